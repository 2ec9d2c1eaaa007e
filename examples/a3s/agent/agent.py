"""An agent with the interface a3s.code.agent.v1.

It answers a prompt with a model if the variable LLM_MODEL names one, or else with what the business application says.
"""

import itertools
from concurrent import futures

import grpc

from lib import business, models
from lib import code_agent_pb2 as pb

SERVICE = "a3s.code.agent.v1.CodeAgentService"
ADDRESS = "127.0.0.1:4088"
DESCRIPTION = "asks a model or the business application"
sessions = set()
numbers = itertools.count(1)


def health(request, context):
    return pb.HealthCheckResponse(status=pb.HealthCheckResponse.STATUS_HEALTHY, message="ready")


def capabilities(request, context):
    model = models.model()
    known = [pb.ModelCapability(provider=models.provider(), model=model)] if model else []
    return pb.GetCapabilitiesResponse(
        info=pb.AgentInfo(name="a3s-example", version="0.1.0", description=DESCRIPTION),
        features=["streaming"],
        models=known,
    )


def create(request, context):
    session = request.session_id or f"session-{next(numbers)}"
    if session in sessions:
        context.abort(grpc.StatusCode.ALREADY_EXISTS, "there is such a session")
    sessions.add(session)
    return pb.CreateSessionResponse(session_id=session, session=pb.Session(session_id=session))


def destroy(request, context):
    exists = request.session_id in sessions
    sessions.discard(request.session_id)
    return pb.DestroySessionResponse(success=exists)


def answer(request, context):
    if request.session_id not in sessions:
        context.abort(grpc.StatusCode.NOT_FOUND, "there is no such session")
    prompt = request.messages[-1].content
    return models.answer(prompt) if models.model() else business.answer(prompt)


def generate(request, context):
    message = pb.Message(role=pb.Message.ROLE_ASSISTANT, content=answer(request, context))
    return pb.GenerateResponse(message=message, finish_reason=pb.FINISH_REASON_STOP)


def stream(request, context):
    yield pb.GenerateChunk(type=pb.GenerateChunk.CHUNK_TYPE_CONTENT, content=answer(request, context))
    yield pb.GenerateChunk(type=pb.GenerateChunk.CHUNK_TYPE_DONE)


def handler(answer, request, response, of=grpc.unary_unary_rpc_method_handler):
    return of(answer, request.FromString, response.SerializeToString)


METHODS = {
    "HealthCheck": handler(health, pb.HealthCheckRequest, pb.HealthCheckResponse),
    "GetCapabilities": handler(capabilities, pb.GetCapabilitiesRequest, pb.GetCapabilitiesResponse),
    "CreateSession": handler(create, pb.CreateSessionRequest, pb.CreateSessionResponse),
    "DestroySession": handler(destroy, pb.DestroySessionRequest, pb.DestroySessionResponse),
    "Generate": handler(generate, pb.GenerateRequest, pb.GenerateResponse),
    "StreamGenerate": handler(
        stream, pb.GenerateRequest, pb.GenerateChunk, grpc.unary_stream_rpc_method_handler
    ),
}

if __name__ == "__main__":
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, METHODS),))
    server.add_insecure_port(ADDRESS)
    server.start()
    server.wait_for_termination()
