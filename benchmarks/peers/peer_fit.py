"""One fit of sib, SpectralCoclustering or kernel CCA, in the peer's own environment; called by all_peers.py.

    python peer_fit.py METHOD in.npz out.npz

Times are CPU seconds of the fit, imports excluded.
"""

from __future__ import annotations

import sys
import time
from importlib.metadata import version

import numpy as np


def counts(given):
    from scipy import sparse

    return sparse.csr_matrix((given["values"], given["indices"], given["indptr"]), shape=tuple(given["shape"]))


def sib(given):
    from sib import SIB

    model = SIB(n_clusters=int(given["k"]), random_state=int(given["seed"]), n_init=1)
    return model, counts(given), lambda fitted: {"rows": fitted.labels_}


def spectral(given):
    from sklearn.cluster import SpectralCoclustering

    model = SpectralCoclustering(int(given["k"]), random_state=int(given["seed"]))
    return model, counts(given), lambda fitted: {"rows": fitted.row_labels_, "columns": fitted.column_labels_}


def kcca(given):
    from cca_zoo.nonparametric import KCCA

    settings = {name: float(given[name]) for name in ("gamma", "shrinkage")}
    model = KCCA(int(given["k"]), kernel="rbf", **settings)

    def correlations(fitted):
        one, two = fitted.transform([given["fresh0"], given["fresh1"]])
        return {"correlations": [np.corrcoef(one[:, c], two[:, c])[0, 1] for c in range(one.shape[1])]}

    return model, [given["view0"], given["view1"]], correlations


METHODS = {"sib": (sib, "sib-clustering"), "spectral": (spectral, "scikit-learn"), "kcca": (kcca, "cca-zoo")}

if __name__ == "__main__":
    method, source, target = sys.argv[1:]
    make, package = METHODS[method]
    with np.load(source) as archive:
        model, data, facts = make({key: archive[key] for key in archive.files})
    began = time.process_time()
    fitted = model.fit(data)
    took = time.process_time() - began
    np.savez(target, cpu_s=took, version=version(package), **facts(fitted))
