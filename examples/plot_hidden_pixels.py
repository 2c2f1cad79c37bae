"""
Fill in hidden pixels
=====================

Half of the pixels of 1,797 handwritten digits are hidden. The model clusters images and pixels, and predicts what is
hidden. A certificate bounds the error on new pixels in grey levels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import gingham as gg

images = load_digits().data  # grey levels from 0 to 16
hidden = np.random.default_rng(0).random(images.shape) < 0.5
X, y = gg.from_matrix(np.where(hidden, np.nan, images), missing="nan")
model = gg.CoClusteringRegressor((20, 16), loss="absolute", alphabet=range(17), random_state=0).fit(X, y)

filled = images.copy()
filled[hidden] = model.predict(np.argwhere(hidden))
error = np.abs(filled - images)[hidden].mean()
certificate = gg.certify(model, X, y, predictor="mean")
print(f"mean error on the hidden pixels: {error:.2f} grey levels")
print(f"guaranteed with 95% confidence: at most {certificate.value:.2f} grey levels")

# %%
# What the model saw, what it predicts for the hidden pixels, and the truth:
rows = {"observed": np.where(hidden, np.nan, images), "filled in": filled, "truth": images}
figure, axes = plt.subplots(3, 10, figsize=(9, 3.2), layout="constrained")
for line, (name, values) in zip(axes, rows.items()):
    for ax, image in zip(line, values):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_facecolor("#f4c7a8")
    line[0].set_ylabel(name)
plt.show()
