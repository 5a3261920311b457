"""The default kernel: one hop of conditional probability."""

import numpy as np

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.graph import Arrivals, Graph, Spread, damping, found_in
from synapse_retrievers.types import Floats, Ints


def conditional(
    seeds: Ints, energies: Floats, graph: Graph, params: RecallParams, of: Ints | None
) -> Spread:
    """One hop of conditional probability, joined by noisy-or, damped at both ends.

        P(v|u)    = co(u, v) / (used(u) + 2)
        spread(v) = (1 - prod over seeds u of (1 - energy(u) * hub(u) * P(v|u))) * hub(v)

    in each namespace by itself (shrinkage as in the replay study, docs/benchmarks.md).
    """
    rows = graph.frontier(seeds)
    asked = np.setdiff1d(rows.neighbor, seeds) if of is None else of
    is_asked, column = found_in(asked, rows.neighbor)
    kept = is_asked.nonzero()[0]
    rows, column = rows.of(kept), column[kept]
    given = rows.used + params.edge_prior
    # min(1, co / given), and 0 where nothing is given
    probability = np.minimum(rows.co, given) / np.where(given > 0.0, given, 1.0)
    damped = energies * damping(seeds, graph, params)
    energy = damped[rows.sender] * probability
    missed = np.ones((len(graph.factors), len(seeds), len(asked)))
    missed[rows.namespace, rows.sender, column] = 1.0 - energy
    joined = 1.0 - missed.prod(axis=1)
    namespace, place = joined.nonzero()
    arrived = Arrivals(
        rows.namespace, seeds[rows.sender], rows.neighbor, energy, probability, rows.activated_at
    )
    return Spread(namespace, asked[place], joined[namespace, place], (arrived,))
