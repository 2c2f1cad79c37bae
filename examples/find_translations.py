"""
Finding translations
====================

Text in, text out: learn from aligned sentences, then find the translation of sentences never seen together.

Run: ``python examples/find_translations.py``

The words of every language become tf-idf vectors. PairwiseClusterAnalysis learns what the languages have in common
from the training sentences alone; a new sentence is then compared, across languages, by what it shares.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import gingham as gg

LANGUAGES = ("English", "German", "Spanish")
TRAINING = [
    ("the cat sleeps in the house", "die katze schläft im haus", "el gato duerme en la casa"),
    ("the dog sleeps in the garden", "der hund schläft im garten", "el perro duerme en el jardín"),
    ("the cat eats fish", "die katze frisst fisch", "el gato come pescado"),
    ("the dog eats meat", "der hund frisst fleisch", "el perro come carne"),
    ("my brother buys bread and milk", "mein bruder kauft brot und milch", "mi hermano compra pan y leche"),
    ("my sister buys fish and wine", "meine schwester kauft fisch und wein", "mi hermana compra pescado y vino"),
    ("my sister reads a book", "meine schwester liest ein buch", "mi hermana lee un libro"),
    ("my brother reads the newspaper", "mein bruder liest die zeitung", "mi hermano lee el periódico"),
    ("the teacher reads a letter", "der lehrer liest einen brief", "el maestro lee una carta"),
    ("the teacher buys a book", "der lehrer kauft ein buch", "el maestro compra un libro"),
    ("it rains in the garden", "es regnet im garten", "llueve en el jardín"),
    ("it rains in the city today", "es regnet heute in der stadt", "llueve hoy en la ciudad"),
    ("the train leaves the city today", "der zug verlässt heute die stadt", "el tren sale hoy de la ciudad"),
    ("the train leaves tomorrow", "der zug fährt morgen ab", "el tren sale mañana"),
    ("tomorrow we drink wine", "morgen trinken wir wein", "mañana bebemos vino"),
    ("today we drink milk", "heute trinken wir milch", "hoy bebemos leche"),
    ("we drink water in the house", "wir trinken wasser im haus", "bebemos agua en la casa"),
    ("we eat bread and meat", "wir essen brot und fleisch", "comemos pan y carne"),
    ("the letter is in the house", "der brief ist im haus", "la carta está en la casa"),
    ("the newspaper is in the garden", "die zeitung ist im garten", "el periódico está en el jardín"),
    ("the water is cold", "das wasser ist kalt", "el agua está fría"),
    ("the city is cold today", "die stadt ist heute kalt", "la ciudad está fría hoy"),
]
NEW = [
    ("the cat sleeps in the garden", "die katze schläft im garten", "el gato duerme en el jardín"),
    ("my brother eats meat", "mein bruder isst fleisch", "mi hermano come carne"),
    ("the teacher reads the newspaper", "der lehrer liest die zeitung", "el maestro lee el periódico"),
    ("my sister buys milk", "meine schwester kauft milch", "mi hermana compra leche"),
    ("it rains tomorrow", "es regnet morgen", "llueve mañana"),
    ("the train leaves today", "der zug verlässt heute", "el tren sale hoy"),
    ("we drink cold water", "wir trinken kaltes wasser", "bebemos agua fría"),
    ("the letter is in the city", "der brief ist in der stadt", "la carta está en la ciudad"),
]


def main() -> None:
    """Fit, retrieve, and show which words a component stands for."""
    vectorisers = [TfidfVectorizer().fit([row[v] for row in TRAINING]) for v in range(3)]
    training = [vectorisers[v].transform([row[v] for row in TRAINING]) for v in range(3)]
    new = [vectorisers[v].transform([row[v] for row in NEW]) for v in range(3)]

    model = gg.PairwiseClusterAnalysis(n_components=15, ridge=0.1).fit(training)

    for query, document in ((0, 1), (2, 0)):
        found, cosine = model.retrieve(query, new[query], document, new[document])
        print(f"\n{LANGUAGES[query]} → {LANGUAGES[document]}")
        for row, (best, similarity) in enumerate(zip(found[:, 0], cosine[:, 0])):
            mark = "✓" if best == row else "✗"
            print(f"  {mark} {NEW[row][query]:<42} {NEW[best][document]:<42} {similarity:.2f}")
    print(f"\nMean reciprocal rank over all pairs of languages: {model.mrr(new):.3f}")

    found, cosine = model.retrieve(0, new[0], 1, new[1], n_documents=len(NEW))
    table = np.empty((len(NEW), len(NEW)))
    np.put_along_axis(table, found, cosine, axis=1)
    figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
    image = ax.imshow(table, cmap="Reds", vmin=0, vmax=1)
    ax.set_yticks(range(len(NEW)), [row[0] for row in NEW])
    ax.set_xticks(range(len(NEW)), [row[1] for row in NEW], rotation=35, ha="right")
    figure.colorbar(image, label="similarity across languages")

    print("\nWords of the first component:")
    for language, vectoriser, weights in zip(LANGUAGES, vectorisers, model.coef_):
        words = vectoriser.get_feature_names_out()[np.argsort(-weights[:, 0])[:5]]
        print(f"  {language:<8} {', '.join(words)}")


if __name__ == "__main__":
    main()
