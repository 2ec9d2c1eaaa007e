"""An agent with the interface a3s.code.agent.v1, to copy: it answers each prompt with its own words, one at a time.

Needs grpcio and protobuf, and beside it the messages, which `protoc --python_out=. code_agent.proto` makes.
"""

import itertools
import re
from concurrent import futures

import code_agent_pb2 as pb
import grpc

SERVICE = "a3s.code.agent.v1.CodeAgentService"
sessions = set()
numbers = itertools.count(1)


def health(request, context):
    return pb.HealthCheckResponse(
        status=pb.HealthCheckResponse.STATUS_HEALTHY,
        message="ready to echo",
        details={"sessions": str(len(sessions))},
    )


def capabilities(request, context):
    return pb.GetCapabilitiesResponse(
        info=pb.AgentInfo(name="echo", version="0.1.0", description="says what it is told"),
        features=["streaming"],
        limits=pb.ResourceLimits(max_concurrent_sessions=8),
    )


def skills(request, context):
    return pb.ListSkillsResponse(skills=[pb.Skill(name="echo", description="Says it again")])


def create(request, context):
    session = request.session_id or f"session-{next(numbers)}"
    sessions.add(session)
    return pb.CreateSessionResponse(session_id=session, session=pb.Session(session_id=session))


def destroy(request, context):
    sessions.discard(request.session_id)
    return pb.DestroySessionResponse(success=True)


def prompt(request, context):
    if request.session_id not in sessions:
        context.abort(grpc.StatusCode.NOT_FOUND, "there is no such session")
    return request.messages[-1].content


def generate(request, context):
    message = pb.Message(role=pb.Message.ROLE_ASSISTANT, content=prompt(request, context))
    return pb.GenerateResponse(message=message, finish_reason=pb.FINISH_REASON_STOP)


def stream(request, context):
    # A real agent would send each piece as its model makes it.
    for word in re.split("(?<= )", prompt(request, context)):
        yield pb.GenerateChunk(type=pb.GenerateChunk.CHUNK_TYPE_CONTENT, content=word)
    yield pb.GenerateChunk(type=pb.GenerateChunk.CHUNK_TYPE_DONE)


def handler(answer, request, response, of=grpc.unary_unary_rpc_method_handler):
    return of(answer, request.FromString, response.SerializeToString)


METHODS = {
    "HealthCheck": handler(health, pb.HealthCheckRequest, pb.HealthCheckResponse),
    "GetCapabilities": handler(capabilities, pb.GetCapabilitiesRequest, pb.GetCapabilitiesResponse),
    "ListSkills": handler(skills, pb.ListSkillsRequest, pb.ListSkillsResponse),
    "CreateSession": handler(create, pb.CreateSessionRequest, pb.CreateSessionResponse),
    "DestroySession": handler(destroy, pb.DestroySessionRequest, pb.DestroySessionResponse),
    "Generate": handler(generate, pb.GenerateRequest, pb.GenerateResponse),
    "StreamGenerate": handler(
        stream, pb.GenerateRequest, pb.GenerateChunk, grpc.unary_stream_rpc_method_handler
    ),
}

if __name__ == "__main__":
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, METHODS),))
    server.add_insecure_port("127.0.0.1:4088")
    server.start()
    server.wait_for_termination()
