"""An agent with the interface a3s.code.agent.v1, to copy: it answers each prompt with its own words, one at a time.

Needs grpcio and protobuf, and beside it the messages, which `protoc --python_out=. code_agent.proto` makes. A prompt that begins with
`run` calls a tool, which waits until somebody allows it.
"""

import itertools
import queue
import re
import threading
import time
from concurrent import futures

import code_agent_pb2 as pb
import grpc

SERVICE = "a3s.code.agent.v1.CodeAgentService"
#: A real agent needs about as long for each piece of its answer.
PAUSE = 0.02
sessions = {}
watchers = set()
numbers = itertools.count(1)


class Session:
    """A conversation."""

    def __init__(self):
        self.messages = 0
        self.cancelled = threading.Event()
        self.running = False
        #: The tools that wait, and the answer of whoever confirms them.
        self.waiting = {}


def tell(kind, session, message="", **data):
    """Sends an event to everybody who watches this session or all."""
    event = pb.AgentEvent(
        type=pb.AgentEvent.EventType.Value(f"EVENT_TYPE_{kind}"),
        session_id=session,
        timestamp=int(time.time() * 1000),
        message=message,
        data=data,
    )
    for wanted, events in list(watchers):
        if wanted in ("", session):
            events.put(event)


def found(request, context):
    if request.session_id not in sessions:
        context.abort(grpc.StatusCode.NOT_FOUND, "there is no such session")
    return sessions[request.session_id]


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
    if session in sessions:
        context.abort(grpc.StatusCode.ALREADY_EXISTS, "there is such a session")
    sessions[session] = Session()
    tell("SESSION_CREATED", session)
    return pb.CreateSessionResponse(session_id=session, session=pb.Session(session_id=session))


def destroy(request, context):
    if sessions.pop(request.session_id, None) is None:
        return pb.DestroySessionResponse(success=False)
    tell("SESSION_DESTROYED", request.session_id)
    return pb.DestroySessionResponse(success=True)


def list_sessions(request, context):
    def described(name, session):
        usage = pb.ContextUsage(message_count=session.messages)
        return pb.Session(session_id=name, state=pb.SESSION_STATE_ACTIVE, context_usage=usage)

    return pb.ListSessionsResponse(sessions=[described(*it) for it in sorted(sessions.items())])


def generate(request, context):
    found(request, context).messages += 2
    content = request.messages[-1].content
    message = pb.Message(role=pb.Message.ROLE_ASSISTANT, content=content)
    return pb.GenerateResponse(message=message, finish_reason=pb.FINISH_REASON_STOP)


def tool(name, session, prompt, cancelled):
    """Asks whether a tool may run, and yields its call and its result."""
    call = pb.ToolCall(id=f"tool-{next(numbers)}", name="run", arguments="{}")
    answer = session.waiting[call.id] = queue.Queue()
    yield pb.GenerateChunk(type=pb.GenerateChunk.CHUNK_TYPE_TOOL_CALL, tool_call=call)
    tell("CONFIRMATION_REQUIRED", name, prompt, tool_id=call.id)
    allowed = None
    while allowed is None and not cancelled.is_set():
        try:
            allowed = answer.get(timeout=0.1)
        except queue.Empty:
            pass
    del session.waiting[call.id]
    result = pb.ToolResult(success=bool(allowed), output="ran" if allowed else "", error="" if allowed else "denied")
    tell("TOOL_COMPLETED", name, tool_id=call.id)
    yield pb.GenerateChunk(type=pb.GenerateChunk.CHUNK_TYPE_TOOL_RESULT, tool_result=result)


def stream(request, context):
    session, name = found(request, context), request.session_id
    prompt = request.messages[-1].content
    session.messages += 2
    session.running = True
    session.cancelled.clear()
    tell("GENERATION_STARTED", name)
    if prompt.startswith("run "):
        yield from tool(name, session, prompt, session.cancelled)
    for word in re.split("(?<= )", prompt):
        if session.cancelled.wait(PAUSE):
            session.running = False
            context.abort(grpc.StatusCode.CANCELLED, "the generation was cancelled")
        yield pb.GenerateChunk(type=pb.GenerateChunk.CHUNK_TYPE_CONTENT, content=word)
    session.running = False
    tell("GENERATION_COMPLETED", name)
    yield pb.GenerateChunk(type=pb.GenerateChunk.CHUNK_TYPE_DONE)


def cancel(request, context):
    session = found(request, context)
    if session.running:
        session.cancelled.set()
    return pb.CancelResponse(success=session.running)


def confirm(request, context):
    answer = found(request, context).waiting.get(request.tool_id)
    if answer is None:
        return pb.ConfirmToolExecutionResponse(success=False, error="no such tool waits")
    answer.put(request.approved)
    tell("CONFIRMATION_RECEIVED", request.session_id, request.reason, tool_id=request.tool_id)
    return pb.ConfirmToolExecutionResponse(success=True)


def events(request, context):
    watcher = (request.session_id, queue.Queue())
    watchers.add(watcher)
    context.add_callback(lambda: watcher[1].put(None))
    try:
        yield from iter(watcher[1].get, None)
    finally:
        watchers.discard(watcher)


def handler(answer, request, response, of=grpc.unary_unary_rpc_method_handler):
    return of(answer, request.FromString, response.SerializeToString)


STREAM = grpc.unary_stream_rpc_method_handler
METHODS = {
    "HealthCheck": handler(health, pb.HealthCheckRequest, pb.HealthCheckResponse),
    "GetCapabilities": handler(capabilities, pb.GetCapabilitiesRequest, pb.GetCapabilitiesResponse),
    "ListSkills": handler(skills, pb.ListSkillsRequest, pb.ListSkillsResponse),
    "CreateSession": handler(create, pb.CreateSessionRequest, pb.CreateSessionResponse),
    "DestroySession": handler(destroy, pb.DestroySessionRequest, pb.DestroySessionResponse),
    "ListSessions": handler(list_sessions, pb.ListSessionsRequest, pb.ListSessionsResponse),
    "Generate": handler(generate, pb.GenerateRequest, pb.GenerateResponse),
    "StreamGenerate": handler(stream, pb.GenerateRequest, pb.GenerateChunk, STREAM),
    "Cancel": handler(cancel, pb.CancelRequest, pb.CancelResponse),
    "ConfirmToolExecution": handler(
        confirm, pb.ConfirmToolExecutionRequest, pb.ConfirmToolExecutionResponse
    ),
    "SubscribeEvents": handler(events, pb.SubscribeEventsRequest, pb.AgentEvent, STREAM),
}

if __name__ == "__main__":
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, METHODS),))
    server.add_insecure_port("127.0.0.1:4088")
    server.start()
    server.wait_for_termination()
