"""One store file serves both frameworks on one Chroma collection."""

import pytest
from langchain_chroma import Chroma
from llama_index.core import VectorStoreIndex
from llama_index.vector_stores.chroma import ChromaVectorStore

from langchain_synapse_retrievers import SynapseRetriever as LangChainRetriever
from llama_index.retrievers.synapse import SynapseRetriever as LlamaIndexRetriever
from synapse_retrievers.testing.corpus import CORPUS, QUERY
from tests.integrations.chroma_client import chroma_client
from tests.integrations.langchain_harness import HashEmbeddings
from tests.integrations.llama_index_harness import HashEmbedding


@pytest.fixture
def both(tmp_path):
    """The same collection and the same file, through either framework."""
    client = chroma_client()
    store = Chroma("shared", HashEmbeddings(), client=client)
    store.add_texts(
        [one.text for one in CORPUS],
        [one.metadata for one in CORPUS],
        [one.id for one in CORPUS],
    )
    vectors = ChromaVectorStore(chroma_collection=client.get_collection("shared"))
    index = VectorStoreIndex.from_vector_store(vectors, HashEmbedding())
    path = tmp_path / "synapse.db"
    chain = LangChainRetriever.from_vectorstore(store, path, k=4)
    llama = LlamaIndexRetriever(index.as_retriever(similarity_top_k=4), path)
    yield chain, llama
    chain.synapse.close()


def shown(retriever):
    if isinstance(retriever, LlamaIndexRetriever):
        return [hit.node_id for hit in retriever.retrieve(QUERY)]
    return [document.id for document in retriever.invoke(QUERY)]


@pytest.mark.parametrize("taught", [0, 1])
def test_what_one_framework_learned_the_other_recalls(both, taught):
    teacher, pupil = both[taught], both[1 - taught]
    before = shown(pupil)
    assert shown(teacher) == before
    absent = next(one.id for one in CORPUS if one.id not in before)
    with teacher.synapse.run() as run:
        shown(teacher)
        run.used([before[0], absent])
    after = shown(pupil)
    assert absent in after
    assert len(after) == len(before)
    assert after == shown(teacher)
