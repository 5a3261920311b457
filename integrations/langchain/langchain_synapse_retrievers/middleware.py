"""An agent's memory in one line: the retriever as a tool, and what it learned committed."""

import asyncio
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import create_retriever_tool

from langchain_synapse_retrievers.retriever import SynapseRetriever


class SynapseMiddleware(AgentMiddleware[Any, Any]):
    """Gives an agent the retriever as a tool; optional, an agent with the tool learns without it.

    Needs the package `langchain` (extra `agents`). When the agent ends, what it taught has
    committed, also on the async path.
    """

    def __init__(
        self,
        retriever: SynapseRetriever,
        *,
        name: str = "search",
        description: str = "Search the knowledge base for passages about a question.",
    ) -> None:
        super().__init__()
        self.retriever = retriever
        self.tools = [create_retriever_tool(retriever, name, description)]

    def after_agent(self, state: Any, runtime: Any) -> None:  # noqa: ARG002 - LangChain's signature
        """Commit what the agent's run taught."""
        self.retriever.synapse.guarded(self.retriever.synapse.flush, None)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """Commit what the agent's run taught, without blocking the event loop."""
        await asyncio.to_thread(self.after_agent, state, runtime)
