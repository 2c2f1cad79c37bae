"""Run one graph peer on a folder of edge lists; called in the peers' own environment, prints its version.

Usage: python graph_peers.py METHOD FOLDER with files NAME.graph.npz (arrays edges, n, k, seed); writes NAME.METHOD.npz.
Times are CPU seconds of the method, the library's own graph object included, imports excluded; memory is the peak of
the process above what it held before. Those of the last graph are printed.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np


def leiden(edges, n, k, seed):
    import igraph
    import leidenalg

    def run():
        graph = igraph.Graph(n=n, edges=edges)
        return leidenalg.find_partition(graph, leidenalg.ModularityVertexPartition, seed=seed).membership

    return run


def leiden_matched(edges, n, k, seed):
    """Modularity with the resolution raised until there are about k communities."""
    import igraph
    import leidenalg

    def run():
        graph = igraph.Graph(n=n, edges=edges)
        low, high, best = 1.0, 64.0, None
        for _ in range(9):
            resolution = (low * high) ** 0.5
            found = leidenalg.find_partition(
                graph, leidenalg.RBConfigurationVertexPartition, resolution_parameter=resolution, seed=seed
            ).membership
            count = len(set(found))
            if best is None or abs(count - k) < abs(best[0] - k):
                best = (count, found)
            low, high = (resolution, high) if count < k else (low, resolution)
        return best[1]

    return run


def graspologic(edges, n, k, seed):
    from graspologic.embed import AdjacencySpectralEmbed
    from scipy import sparse
    from sklearn.mixture import GaussianMixture

    def run():
        upper = sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
        matrix = sparse.csr_array(upper + upper.T)
        points = AdjacencySpectralEmbed(n_components=k, svd_seed=seed).fit_transform(matrix)
        return GaussianMixture(k, n_init=3, random_state=seed).fit_predict(points)

    return run


def graspologic_leiden(edges, n, k, seed):
    from graspologic.partition import leiden
    from scipy import sparse

    def run():
        upper = sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
        found = leiden(sparse.csr_array(upper + upper.T), random_seed=seed + 1)
        labels = np.arange(n) + n  # a node without edges is not in the answer
        labels[np.fromiter(found, int, len(found))] = np.fromiter(found.values(), int, len(found))
        return labels

    return run


def louvain(edges, n, k, seed):
    from scipy import sparse
    from sknetwork.clustering import Louvain

    def run():
        upper = sparse.coo_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
        return Louvain(random_state=seed).fit_predict(sparse.csr_matrix(upper + upper.T))

    return run


METHODS = {
    "leidenalg": leiden,
    "leidenalg matched": leiden_matched,
    "graspologic": graspologic,
    "graspologic Leiden": graspologic_leiden,
    "scikit-network Louvain": louvain,
}

PACKAGES = {
    "leidenalg": "leidenalg",
    "leidenalg matched": "leidenalg",
    "graspologic": "graspologic",
    "graspologic Leiden": "graspologic",
    "scikit-network Louvain": "scikit-network",
}


def peak_memory():
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if "VmHWM" in line), 0)


if __name__ == "__main__":
    method, folder = sys.argv[1:]
    for source in sorted(Path(folder).glob("*.graph.npz")):
        with np.load(source) as archive:
            edges, n, k, seed = archive["edges"], int(archive["n"]), int(archive["k"]), int(archive["seed"])
        run = METHODS[method](edges, n, k, seed)
        before = peak_memory()
        start, wall = time.process_time(), time.perf_counter()
        labels = np.asarray(run())
        took, walled = time.process_time() - start, time.perf_counter() - wall
        np.savez(str(source).replace(".graph.npz", f".{method}.npz"), labels=labels, cpu_s=took, wall_s=walled)
        last = {"cpu_s": took, "wall_s": walled, "peak_bytes": peak_memory() - before}
    print(json.dumps({"version": version(PACKAGES[method]), **last}))
