"""Pairwise cluster analysis (P3) and kernel CCA for two or more views of the same objects."""

from __future__ import annotations

from typing import ClassVar

from gingham.models.views import fit as multiview
from gingham.models.views.estimator import ViewsModel


class PairwiseClusterAnalysis(ViewsModel):
    r"""What do several views of the same objects say in common? P3, for any number of views.

    Solves the parallel sum :math:`(\sum_i (K_i + \tau_i I)^{-1})\, c = c/\gamma` for centred kernels of mean
    diagonal one: a single eigenproblem of the size of the sample whatever the number of views. The score of an
    object in view i, :math:`F_i(x) = k_i(x)^\top (K_i + \tau_i I)^{-1} c`, is the ridge regression of the
    consensus c on that view.

    Parameters
    ----------
    n_components : int, optional
        Components; chosen by held-out correlation when None.
    kernel : str, callable or list of them, default "linear"
        A name of ``sklearn.metrics.pairwise_kernels``, a function of two matrices, or "precomputed"; one for all
        views or one per view.
    ridge : float or list of float, optional
        τ in units of the kernel's mean diagonal; chosen by held-out correlation when None. Retrieval is flat
        between 0.01 and 1; clusters against a background want 1 or more.
    kernel_params : dict or list of dict, optional
        Parameters of the kernels, for instance ``{"gamma": 0.1}``.
    solver : {"auto", "exact", "nystroem", "primal"}
        "exact" holds the n × n kernels, "nystroem" a few landmarks, "primal" (linear kernels) only products with
        the views. "auto": exact up to 4000 objects, beyond that primal for linear kernels and Nyström for others.
    n_landmarks : int
        Landmarks of the Nyström solver.
    weighting : float
        Retrieval weights component c by (γ_c/γ_0)^weighting.
    background : float
        Objects whose strongest component stays below so many standard deviations get the label −1.
    cv : int
        Folds when ridge or n_components is chosen.
    random_state : int, RandomState or None
        Folds, landmarks, the first Krylov block.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Strongest component of each object, −1 for background.
    correlations_ : ndarray of shape (n_components_,)
        ρ on the training objects, averaged over pairs of views (P3's (39), corrected). They are optimistic: use
        ``correlations(held_out_views)``.
    strengths_ : ndarray of shape (n_components_,)
        γ, decreasing.
    consensus_ : ndarray of shape (n_samples, n_components_)
        c, mean square one.
    coef_ : list of ndarray
        Feature weights, for linear kernels.
    ridge_, n_components_ : the values in use.
    choice_ : Choice or None
        Held-out correlations behind the choice of ridge and n_components.

    Notes
    -----
    With one ridge for all views this is regularised MAX-VAR kernel CCA: 1/γ = (s − μ)/τ with μ the eigenvalues of
    Σ K_i(K_i + τI)⁻¹ over s views. Expect the retrieval of multi-view kernel CCA, at a fraction of its cost.

    Examples
    --------
    >>> import numpy as np
    >>> from gingham import PairwiseClusterAnalysis
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(200, 2))
    >>> views = [hidden @ rng.normal(size=(2, 5)) + rng.normal(size=(200, 5)) for _ in range(3)]
    >>> model = PairwiseClusterAnalysis(n_components=2, ridge=0.1).fit(views)
    >>> model.transform(views)[0].shape
    (200, 2)
    """

    _method: ClassVar[multiview.Method] = staticmethod(multiview.pairwise)


class KernelCCA(ViewsModel):
    r"""Multi-view kernel CCA with a ridge, the comparison for :class:`PairwiseClusterAnalysis`.

    Maximises :math:`\sum_{i \ne j} \mathrm{cov}(F_i, F_j)` under
    :math:`\sum_i \alpha_i^\top (K_i^2 + \tau_i K_i) \alpha_i = 1`: an eigenproblem of the size of all views
    together. Parameters and attributes are those of :class:`PairwiseClusterAnalysis`; ``strengths_`` are the
    eigenvalues.
    """

    _method: ClassVar[multiview.Method] = staticmethod(multiview.correlated)
