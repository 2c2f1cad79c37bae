"""
What will this customer buy next?
=================================

A shop knows who bought what, and no more. We rank what each customer has not bought yet, read why, and certify how
often the list misses. The purchases are made up here (three kinds of customers, six shelves, popular and rare
products), so that the example runs anywhere; with a table of your own, only the first lines change.
"""

import matplotlib.pyplot as plt
import numpy as np

import gingham as gg

rng = np.random.default_rng(0)
shelves = {
    "baking": ["flour", "yeast", "sugar", "vanilla", "raisins", "almonds"],
    "breakfast": ["oats", "milk", "honey", "jam", "butter", "rolls"],
    "evening": ["crisps", "beer", "wine", "olives", "cheese", "nuts"],
    "barbecue": ["sausages", "charcoal", "mustard", "buns", "ketchup", "corn"],
    "cleaning": ["soap", "sponges", "bleach", "towels", "brushes", "bin bags"],
    "pets": ["cat food", "dog food", "litter", "treats", "toys", "leash"],
}
products = [name for shelf in shelves.values() for name in shelf]
# Families bake and have breakfast, hosts have guests in the evening, keepers of pets clean.
drawn_to = np.array(
    [[0.4, 0.4, 0.05, 0.05, 0.05, 0.05], [0.05, 0.05, 0.4, 0.4, 0.05, 0.05], [0.05, 0.1, 0.05, 0.05, 0.35, 0.4]]
)
popular = np.array([0.3, 0.25, 0.18, 0.13, 0.09, 0.05])

n = 9000
customer = rng.integers(0, 600, n)
shelf = np.array([rng.choice(6, p=drawn_to[c % 3]) for c in customer])
product = 6 * shelf + rng.choice(6, n, p=popular)
purchases = np.unique(np.column_stack([customer, product]), axis=0)
purchases = [(f"customer {c}", products[p]) for c, p in rng.permutation(purchases)]

# %%
# Hide some purchases, to see later whether they are found; learn from the rest. Everything that has to be chosen is
# chosen inside ``fit``.

train, hidden = purchases[600:], purchases[:600]
known = {user for user, _ in train}
hidden = [pair for pair in hidden if pair[0] in known]
ranker = gg.BasketRanker(n_groups=6, random_state=0).fit(train)
print(ranker.selection_["settings"])

# %%
# The next four products of two customers, with reasons: the groups of the basket that pull a product up or down.

for user, item, score, reasons in zip(
    *(ranker.recommend(["customer 1", "customer 2"], n=4)[column] for column in ("user", "item", "score", "reasons"))
):
    print(f"{user}: {item:<10} {score:5.2f}  because of {reasons}")

# %%
# Somebody who walks in with two things in the basket needs no new fit.

print(ranker.recommend_for(["beer", "charcoal"], n=3)["item"].tolist())

# %%
# The board: who has a row's products is drawn to a column's.

coarse = ranker.boards_[1]
figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
limit = np.abs(coarse.table).max()
image = axes.imshow(coarse.table, cmap="RdBu_r", vmin=-limit, vmax=limit)
axes.set_yticks(range(len(coarse.basket_groups)), coarse.basket_groups)
axes.set_xticks(range(len(coarse.target_groups)), coarse.target_groups, rotation=30, ha="right")
axes.set_ylabel("in the basket")
axes.set_xlabel("drawn to")
figure.colorbar(image, label="pull")

# %%
# How often does a list of four miss what the customer bought? And is it better than listing what sells best? Both
# statements hold with confidence 95 %, for customers like these.

print(gg.certify_ranking(ranker, hidden, at=4).explain())

taken = {}
for user, item in train:
    taken.setdefault(user, set()).add(item)
sold = {item: sum(item in mine for mine in taken.values()) for item in products}
best_sellers = sorted(products, key=sold.get, reverse=True)
lists = {user: [item for item in best_sellers if item not in mine][:4] for user, mine in taken.items()}
print(gg.certify_ranking(ranker, hidden, at=4, against=lists).explain())
