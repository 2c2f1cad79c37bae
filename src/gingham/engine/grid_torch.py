"""A co-clustering that lives on a GPU: cells, memberships and whole sweeps in torch, on `project_block`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Protocol

import torch
from torch import Tensor

from gingham.arrays import AnyArray
from gingham.engine.project_torch import DeviceRows, buffer_for, project_block, tall_product, triton_kernels


class Cell(Protocol):
    """What the device needs of a cell model, whose own arrays lie there already (`CellModel.placed`)."""

    def answer(self, statistics: Tensor) -> Tensor: ...

    def coef(self, answer: Tensor) -> Tensor: ...


class Grid:
    """A co-clustering of one grid that lives on the device: `sweep` never waits for the host.

    Parameters
    ----------
    layouts : one DeviceRows per mode
    assigns : one (n_items, m) tensor per mode, float32 or float64; sweeps write into them
    answers : tensor of shape (m_1, …, m_d[, |Y|])
    """

    def __init__(self, layouts: Sequence[DeviceRows], cell: Cell, assigns: Sequence[Tensor], answers: Tensor) -> None:
        self.layouts, self.cell = tuple(layouts), cell
        self.assigns = [q.contiguous() for q in assigns]
        self.answers = answers
        self.mass = [q.mean(0, dtype=torch.float64) for q in self.assigns]
        self.entropy = [torch.special.xlogy(q, q).sum(dtype=torch.float64) for q in self.assigns]
        self.buffers = []
        device = self.assigns[0].device
        for axis, tuples in enumerate(self.layouts):
            width = prod(int(q.shape[1]) for j, q in enumerate(self.assigns) if j != axis)
            fits = tuples.one_hot and self.assigns[0].dtype == torch.float32
            self.buffers.append(buffer_for(tuples, width, device) if fits else None)

    def snapshot(self) -> dict[str, list[Tensor]]:
        """Copies of all that sweeps change, on the device."""
        changed = {"assigns": self.assigns, "answers": [self.answers], "mass": self.mass, "entropy": self.entropy}
        return {name: [tensor.clone() for tensor in tensors] for name, tensors in changed.items()}

    def restore(self, snapshot: Mapping[str, Sequence[AnyArray]]) -> None:
        """Go back to a snapshot, whose tensors may have become arrays."""
        place = self.assigns[0].device
        here = {name: [torch.as_tensor(a).to(place, copy=True) for a in arrays] for name, arrays in snapshot.items()}
        self.assigns, self.mass, self.entropy = here["assigns"], here["mass"], here["entropy"]
        (self.answers,) = here["answers"]

    def sweep(self, beta: float) -> Tensor:
        """One pass over all modes. Returns N·L̂ and n Ī of every mode as one device tensor."""
        for axis in range(len(self.assigns)):
            loss = self.step(axis, beta)
        terms = [loss]
        for q, mass, entropy in zip(self.assigns, self.mass, self.entropy):
            terms.append(entropy - q.shape[0] * torch.special.xlogy(mass, mass).sum())
        return torch.stack([term.double() for term in terms])

    def step(self, axis: int, beta: float) -> Tensor:
        """q(c|x) ∝ qbar(c) exp(−β G) for one mode, then its mass and the answers (P0 eqs. 40-42)."""
        q = self.assigns[axis]
        others = [other for j, other in enumerate(self.assigns) if j != axis]
        coef = torch.movedim(self.cell.coef(self.answers), (axis, -1), (0, 1))
        m = coef.shape[0]
        weights = coef.reshape(m, -1).to(q.dtype).T.contiguous()
        log_mass = torch.log(self.mass[axis]).clamp(min=-1e30).to(q.dtype)
        table = torch.zeros(m, weights.shape[0], dtype=q.dtype, device=q.device)
        mass = torch.zeros(m, dtype=torch.float64, device=q.device)
        entropy = torch.zeros((), dtype=torch.float64, device=q.device)
        for block in self.layouts[axis].blocks:
            sums = project_block(self.layouts[axis], block, others, self.buffers[axis]).reshape(
                block.last - block.first, -1
            )
            part = q[block.first : block.last]
            block_mass, block_entropy = gibbs(log_mass, sums @ weights, beta, part)
            mass += block_mass
            entropy += block_entropy
            table += part.T @ sums
        self.mass[axis], self.entropy[axis] = mass / q.shape[0], entropy
        shape = [int(p.shape[1]) for j, p in enumerate(self.assigns) if j != axis]
        cells = torch.movedim(table.reshape(m, -1, *shape), (0, 1), (axis, -1)).double()
        self.answers = self.cell.answer(cells)
        return (self.cell.coef(self.answers).double() * cells).sum()


class Members:
    """Several co-clusterings of one two-mode grid side by side: one pass over the observations serves all of them.

    Parameters
    ----------
    layouts : one DeviceRows per mode, made for B·m clusters
    assigns : two tensors of shape (B, n_items, m)
    answers : tensor of shape (B, m_1, m_2[, |Y|])
    """

    def __init__(self, layouts: Sequence[DeviceRows], cell: Cell, assigns: Sequence[Tensor], answers: Tensor) -> None:
        self.layouts, self.cell, self.answers = tuple(layouts), cell, answers
        self.assigns = [q.contiguous() for q in assigns]
        self.mass = [q.mean(1, dtype=torch.float64) for q in self.assigns]
        self.entropy = [torch.special.xlogy(q, q).sum((1, 2), dtype=torch.float64) for q in self.assigns]

    def sweep(self, beta: float) -> Tensor:
        """One pass over both modes. Returns N·L̂ and n Ī of every mode for each member, (B, 3), on the device."""
        for axis in range(2):
            loss = self.step(axis, beta)
        terms = [loss]
        for q, mass, entropy in zip(self.assigns, self.mass, self.entropy):
            terms.append(entropy - q.shape[1] * torch.special.xlogy(mass, mass).sum(1))
        return torch.stack([term.double() for term in terms], dim=1)

    def step(self, axis: int, beta: float) -> Tensor:
        """The step of `Grid`, for every member."""
        q, other = self.assigns[axis], self.assigns[1 - axis]
        n_members, _, m = q.shape
        rest = other.shape[2]
        coef = torch.movedim(self.cell.coef(self.answers), (1 + axis, -1), (1, 2))
        weights = coef.reshape(n_members, m, -1).to(q.dtype).transpose(1, 2).contiguous()
        n_features = weights.shape[1] // rest
        log_mass = torch.log(self.mass[axis]).clamp(min=-1e30).to(q.dtype)
        table = torch.zeros(n_members, m, weights.shape[1], dtype=q.dtype, device=q.device)
        mass = torch.zeros(n_members, m, dtype=torch.float64, device=q.device)
        entropy = torch.zeros(n_members, dtype=torch.float64, device=q.device)
        side_by_side = other.transpose(0, 1).reshape(other.shape[1], n_members * rest)
        for block in self.layouts[axis].blocks:
            sums = project_block(self.layouts[axis], block, [side_by_side])
            sums = (
                sums.view(-1, n_features, n_members, rest).permute(2, 0, 1, 3).reshape(n_members, -1, weights.shape[1])
            )
            cost = torch.bmm(sums, weights)
            for b in range(n_members):
                part = q[b, block.first : block.last]
                block_mass, block_entropy = gibbs(log_mass[b], cost[b], beta, part)
                mass[b] += block_mass
                entropy[b] += block_entropy
            table += tall_product(q[:, block.first : block.last], sums)
        self.mass[axis], self.entropy[axis] = mass / q.shape[1], entropy
        cells = torch.movedim(table.reshape(n_members, m, n_features, rest), (1, 2), (1 + axis, -1)).double()
        self.answers = torch.vmap(self.cell.answer)(cells)  # empty cells look at their own member alone
        return (self.cell.coef(self.answers).double() * cells).sum((1, 2, 3))


def gibbs(log_mass: Tensor, cost: Tensor, beta: float, out: Tensor) -> tuple[Tensor, Tensor]:
    """Fill ``out`` with the new memberships; returns column sums and Σ q ln q."""
    if triton_kernels is not None and cost.is_cuda and cost.dtype == torch.float32:
        return triton_kernels.gibbs_rows(log_mass, cost, beta, out)
    logits = log_mass - beta * cost
    out.copy_(torch.softmax(logits, 1))
    return out.sum(0, dtype=torch.float64), torch.special.xlogy(out, out).sum(dtype=torch.float64)
