package tracing

// scope is the name under which the gateway's spans are known to collectors.
const scope = "github.com/durward-gateway/durward"

// These are the names of the spans of steps.
//
//nolint:gosec // names, not credentials
const (
	spanAuthenticate = "durward.authenticate"
	spanLimit        = "durward.limit"
	spanPolicy       = "durward.policy"
	spanApproval     = "durward.approval"
	spanCredential   = "durward.credential"
)

// These are the gateway's own attributes.
//
//nolint:gosec // names, not credentials
const (
	attrServer           = "durward.server"
	attrOutcome          = "durward.outcome"
	attrModel            = "durward.model"
	attrRoutedModel      = "durward.routed_model"
	attrRouteReason      = "durward.route_reason"
	attrAuthResult       = "durward.auth.result"
	attrAuthKind         = "durward.auth.kind"
	attrLimitWhere       = "durward.limit.where"
	attrLimitResult      = "durward.limit.result"
	attrPolicyResult     = "durward.policy.result"
	attrPolicyID         = "durward.policy.id"
	attrPolicyRevision   = "durward.policy.revision"
	attrPolicyRule       = "durward.policy.rule"
	attrApprovalID       = "durward.approval.id"
	attrApprovalResult   = "durward.approval.result"
	attrCredentialKind   = "durward.credential.kind"
	attrCredentialResult = "durward.credential.result"
	attrCredentialNew    = "durward.credential.refreshed"
)

// These are attributes of the semantic conventions: general ones, those of MCP and JSON-RPC, and those of GenAI.
//
//nolint:gosec // names, not credentials
const (
	attrErrorType       = "error.type"
	attrServerAddress   = "server.address"
	attrServerPort      = "server.port"
	attrHTTPStatus      = "http.response.status_code"
	attrHTTPMethod      = "http.request.method"
	attrMCPMethod       = "mcp.method.name"
	attrMCPSession      = "mcp.session.id"
	attrMCPVersion      = "mcp.protocol.version"
	attrRequestID       = "jsonrpc.request.id"
	attrRPCStatus       = "rpc.response.status_code"
	attrToolName        = "gen_ai.tool.name"
	attrPromptName      = "gen_ai.prompt.name"
	attrOperation       = "gen_ai.operation.name"
	attrProvider        = "gen_ai.provider.name"
	attrRequestModel    = "gen_ai.request.model"
	attrResponseModel   = "gen_ai.response.model"
	attrInputTokens     = "gen_ai.usage.input_tokens"
	attrOutputTokens    = "gen_ai.usage.output_tokens"
	attrTokensEstimated = "durward.usage.estimated"
)

// ToolError is the error.type of a tool's own error (isError).
const ToolError = "tool_error"

// executeTool is the gen_ai.operation.name of a call to a tool.
const executeTool = "execute_tool"
