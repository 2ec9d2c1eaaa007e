"""The parts of the agent. The image's build adds code_agent_pb2, the messages of the interface."""
