"""What LlamaIndex's retrievers restrict, follow and fetch stays theirs."""

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    VectorIndexRetriever,
)
from llama_index.core.schema import IndexNode, NodeWithScore, TextNode

from llama_index.retrievers.synapse import SynapseRetriever
from synapse_retrievers.testing.corpus import CORPUS, QUERY
from tests.integrations.llama_index_harness import (
    HashEmbedding,
    StubRetriever,
    chroma,
    only,
    said,
    simple,
)


def ids(hits):
    return [hit.node_id for hit in hits]


def warm(retriever, hits, tenant=None):
    """Teach the third hit together with a node that is not among the hits; that node's id."""
    absent = next(
        one.id for one in CORPUS if one.id not in ids(hits) and tenant in {None, one.tenant}
    )
    retriever.synapse.reinforce([hits[2].node_id, absent], query=QUERY)
    return absent


@pytest.mark.parametrize("make", [chroma, simple])
def test_an_absent_node_comes_from_where_the_text_lies(make):
    base = make().as_retriever(similarity_top_k=5)
    ours = SynapseRetriever(base, "memory:")
    absent = warm(ours, base.retrieve(QUERY))
    assert absent in ids(ours.retrieve(QUERY))


@pytest.mark.parametrize("make", [chroma, simple])
@pytest.mark.parametrize(("tenant", "enters"), [("a", True), ("b", False)])
def test_a_filter_keeps_its_door(make, tenant, enters):
    base = make().as_retriever(similarity_top_k=4, filters=only("tenant", "a"))
    ours = SynapseRetriever(base, "memory:")
    absent = warm(ours, base.retrieve(QUERY), tenant)
    after = ours.retrieve(QUERY)
    assert (absent in ids(after)) is enters
    assert {hit.metadata["tenant"] for hit in after} == {"a"}
    assert len(after) == 4


def test_node_ids_keep_their_door():
    index = simple()
    allowed = [one.id for one in CORPUS[:8]]
    base = index.as_retriever(similarity_top_k=4)
    base._node_ids = allowed
    ours = SynapseRetriever(base, "memory:")
    ours.synapse.reinforce([base.retrieve(QUERY)[1].node_id, CORPUS[12].id], query=QUERY)
    assert set(ids(ours.retrieve(QUERY))) <= set(allowed)


def test_a_fusion_of_retrievers_is_reordered_and_with_an_index_displaced():
    index = chroma()
    parts = [index.as_retriever(similarity_top_k=4), index.as_retriever(similarity_top_k=5)]
    base = QueryFusionRetriever(
        parts, similarity_top_k=5, num_queries=1, use_async=False, llm=said("")
    )
    found = base.retrieve(QUERY)
    plain = SynapseRetriever(base, "memory:")
    absent = warm(plain, found)
    assert sorted(ids(plain.retrieve(QUERY))) == sorted(ids(found))
    assert "index=" in plain.last_trace.reason
    indexed = SynapseRetriever(base, plain.synapse, index=index)
    assert absent in ids(indexed.retrieve(QUERY))


def test_a_filter_inside_of_a_fusion_closes_the_door():
    index = chroma()
    inner = index.as_retriever(similarity_top_k=5, filters=only("tenant", "a"))
    base = QueryFusionRetriever(
        [inner], similarity_top_k=5, num_queries=1, use_async=False, llm=said("")
    )
    ours = SynapseRetriever(base, "memory:", index=index)
    absent = warm(ours, base.retrieve(QUERY), "b")
    assert absent not in ids(ours.retrieve(QUERY))


def test_objects_are_followed_by_the_wrapped_retriever_and_the_count_is_its_own():
    inside = [NodeWithScore(node=TextNode(id_=f"in {n}", text=f"inside {n}")) for n in range(3)]
    pointer = IndexNode(id_="pointer", text="points", index_id="map")
    nodes = {"pointer": pointer, "plain": TextNode(id_="plain", text="plain")}
    base = Following(nodes, inside)
    before = base.retrieve(QUERY)
    ours = SynapseRetriever(base, "memory:")
    assert ids(ours.retrieve(QUERY)) == ids(before)
    assert len(before) == 4


class Following(StubRetriever):
    """Its pointer stands for three nodes."""

    def __init__(self, nodes, inside):
        super().__init__(nodes)
        part = StubRetriever({})
        part.retrieve = lambda query: list(inside)
        self.object_map = {"map": part}

    def _handle_recursive_retrieval(self, query_bundle, nodes):
        return super(StubRetriever, self)._handle_recursive_retrieval(query_bundle, nodes)


def test_postprocessors_behind_us_keep_working():
    base = chroma().as_retriever(similarity_top_k=5)
    ours = SynapseRetriever(base, "memory:")
    before = base.retrieve(QUERY)
    warm(ours, before)
    cutoff = before[2].score
    after = ours.retrieve(QUERY)
    kept = SimilarityPostprocessor(similarity_cutoff=cutoff).postprocess_nodes(after)
    assert len(kept) == len([hit for hit in before if hit.score >= cutoff])
    assert sorted(ids(LongContextReorder().postprocess_nodes(after))) == sorted(ids(after))


class Tiny(StubRetriever):
    """Its scores are as small as those of vectors that nobody scaled."""

    def _retrieve(self, query_bundle):
        hits = super()._retrieve(query_bundle)
        return [NodeWithScore(node=hit.node, score=hit.score * 1e-261) for hit in hits]


def test_scores_so_small_that_they_are_0_do_not_let_a_weak_node_overtake_the_first():
    base = Tiny({one.id: TextNode(id_=one.id, text=one.text) for one in CORPUS})
    ours = SynapseRetriever(base, "memory:")
    first, second, *_ = ids(base.retrieve(QUERY))
    ours.synapse.reinforce([first, second], strength=0.1)
    assert ids(ours.retrieve(QUERY))[0] == first


def test_an_empty_query_changes_nothing_and_teaches_nothing():
    base = chroma().as_retriever(similarity_top_k=4)
    ours = SynapseRetriever(base, "memory:")
    warm(ours, base.retrieve(QUERY))
    assert ids(ours.retrieve("")) == ids(base.retrieve(""))


def test_an_auto_merging_retriever_keeps_its_count_and_is_displaced_through_its_index():
    documents = [Document(text=" ".join([one.text] * 6), id_=one.id) for one in CORPUS]
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[128, 32], chunk_overlap=0)
    nodes = parser.get_nodes_from_documents(documents)
    context = StorageContext.from_defaults()
    context.docstore.add_documents(nodes)
    index = VectorStoreIndex(
        get_leaf_nodes(nodes), storage_context=context, embed_model=HashEmbedding()
    )
    base = AutoMergingRetriever(index.as_retriever(similarity_top_k=6), context)
    before = base.retrieve(QUERY)
    ours = SynapseRetriever(base, "memory:", index=index)
    assert ids(ours.retrieve(QUERY)) == ids(before)
    leaves = [node.node_id for node in get_leaf_nodes(nodes)]
    absent = next(one for one in leaves if one not in ids(before))
    ours.synapse.reinforce([before[-1].node_id, absent], query=QUERY)
    after = ours.retrieve(QUERY)
    assert len(after) == len(before)
    assert (absent in ids(after)) is (len(before) > 1)


@pytest.mark.parametrize("key", ["file_path", "source"])
def test_nodes_of_one_file_are_learned_together(key):
    nodes = [
        TextNode(id_=f"{one.id}/{part}", text=f"{one.text} part {part}", metadata={key: one.source})
        for one in CORPUS
        for part in range(2)
    ]
    store = chroma([]).vector_store
    index = VectorStoreIndex(
        nodes,
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=HashEmbedding(),
    )
    base = index.as_retriever(similarity_top_k=4)
    ours = SynapseRetriever(base, "memory:", node="source")
    before = base.retrieve(QUERY)
    shown = {hit.metadata[key] for hit in before}
    absent = next(one.source for one in CORPUS if one.source not in shown)
    ours.synapse.reinforce([before[0].metadata[key], absent], query=QUERY)
    after = ours.retrieve(QUERY)
    assert absent in {hit.metadata[key] for hit in after}
    assert len(after) == 4


def test_a_node_deleted_from_an_index_never_comes_back_out_of_its_docstore():
    index = simple()
    base = index.as_retriever(similarity_top_k=4)
    ours = SynapseRetriever(base, "memory:")
    absent = warm(ours, base.retrieve(QUERY))
    index.delete_nodes([absent])
    assert absent not in ids(ours.retrieve(QUERY))
    assert ours.synapse.store.stats().namespaces["personal"].nodes == 2
    assert [node.id for node in ours.synapse.store.nodes() if node.gone_at] == [absent]


def test_what_a_subclass_drops_by_itself_does_not_come_in():
    base = Own(chroma(), similarity_top_k=8)
    ours = SynapseRetriever(base, "memory:")
    absent = warm(ours, base.retrieve(QUERY), "b")
    assert absent not in ids(ours.retrieve(QUERY))
    assert "index=" in ours.last_trace.reason


class Own(VectorIndexRetriever):
    """Drops the other tenant's nodes after it has found them."""

    def _retrieve(self, query_bundle):
        found = super()._retrieve(query_bundle)
        return [hit for hit in found if hit.metadata["tenant"] == "a"]


def test_a_users_fetch_is_asked_once():
    nodes = {one.id: TextNode(id_=one.id, text=one.text) for one in CORPUS}
    asked = []
    base = StubRetriever(nodes)
    ours = SynapseRetriever(base, "memory:", fetch=lambda wanted: asked.append([*wanted]) or {})
    absent = warm(ours, base.retrieve(QUERY))
    ours.retrieve(QUERY)
    assert asked == [[absent]]
