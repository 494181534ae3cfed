package platformapi

import (
	"net/http"

	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/app/routes"
)

// These are the paths of the API.
const (
	serversPath   = "/api/servers"
	serverPath    = serversPath + "/{server_id}"
	bySlugPath    = serversPath + "/by-slug/{slug}"
	connectPath   = "/connect"
	testPath      = "/test"
	statusPath    = "/connection"
	directoryPath = "/api/server-directory"
	entryPath     = directoryPath + "/{id}"

	agentsPath        = "/api/agents"
	agentPath         = agentsPath + "/{agent_id}"
	credentialsPath   = agentPath + "/credentials"
	credentialPath    = credentialsPath + "/{credential_id}"
	oldPolicyPath     = "/api/policy"
	policiesPath      = "/api/v2/policies"
	policyPath        = policiesPath + "/{policy_id}"
	toolsPath         = serverPath + "/tools"
	registeredPath    = serverPath + "/registration"
	userRevokePath    = "/api/users/{user_id}/revoke"
	sessionsPath      = "/api/sessions"
	sessionPath       = sessionsPath + "/{session_id}"
	approvalsPath     = "/api/approvals"
	approvalPath      = approvalsPath + "/{approval_id}"
	auditPath         = "/api/audit"
	organizationsPath = "/api/organizations"
	organizationPath  = organizationsPath + "/{organization_id}"
	refusedPath       = "/api/refused-tokens"
	snippetsPath      = "/api/clients/snippets"
)

// table is every address that this handler serves. Beside its path a route declares who may call it, whose objects it
// sees and how it is audited. A route that does not declare all of this stops the program at its start.
var table = routes.MustTable(
	routes.At(http.MethodGet, paths.Health, routes.Public, routes.NoOrganization, routes.AuditNone, health),
	routes.At(http.MethodHead, paths.Health, routes.Public, routes.NoOrganization, routes.AuditNone, health),
	routes.At(http.MethodGet, paths.Ready, routes.Public, routes.NoOrganization, routes.AuditNone, ready),
	routes.At(http.MethodHead, paths.Ready, routes.Public, routes.NoOrganization, routes.AuditNone, ready),

	routes.At(http.MethodGet, serversPath, routes.User, routes.OwnOrganization, routes.AuditRead, listServers),
	routes.At(http.MethodPost, serversPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createServer),
	routes.At(http.MethodGet, serverPath, routes.User, routes.OwnOrganization, routes.AuditRead, getServer),
	routes.At(http.MethodPost, serverPath+testPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, testServer),
	routes.At(http.MethodPut, serverPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, updateServer),
	routes.At(http.MethodDelete, serverPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, deleteServer),
	routes.At(http.MethodPost, serverPath+connectPath, routes.User, routes.OwnOrganization, routes.AuditConnection, connect),
	routes.At(http.MethodGet, serverPath+statusPath, routes.User, routes.OwnOrganization, routes.AuditRead, connectionStatus),
	routes.At(http.MethodDelete, serverPath+statusPath, routes.User, routes.OwnOrganization, routes.AuditConnection, disconnect),
	routes.At(http.MethodGet, bySlugPath, routes.User, routes.OwnOrganization, routes.AuditRead, getServer),
	routes.At(http.MethodPost, bySlugPath+connectPath, routes.User, routes.OwnOrganization, routes.AuditConnection, connect),
	routes.At(http.MethodGet, bySlugPath+statusPath, routes.User, routes.OwnOrganization, routes.AuditRead, connectionStatus),
	routes.At(http.MethodDelete, bySlugPath+statusPath, routes.User, routes.OwnOrganization, routes.AuditConnection, disconnect),
	routes.At(http.MethodDelete, registeredPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, forgetRegistration),
	routes.At(http.MethodGet, toolsPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, listTools),
	routes.At(http.MethodPost, toolsPath+"/accept", routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, acceptTool),

	routes.At(http.MethodGet, organizationsPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, listOrganizations),
	routes.At(http.MethodDelete, organizationPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, deleteOrganization),

	routes.At(http.MethodGet, snippetsPath, routes.User, routes.OwnOrganization, routes.AuditRead, clientSnippets),

	routes.At(http.MethodGet, directoryPath, routes.User, routes.OwnOrganization, routes.AuditRead, listEntries),
	routes.At(http.MethodPost, directoryPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createEntry),
	routes.At(http.MethodGet, entryPath, routes.User, routes.OwnOrganization, routes.AuditRead, getEntry),
	routes.At(http.MethodPut, entryPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, updateEntry),
	routes.At(http.MethodDelete, entryPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, deleteEntry),

	routes.At(http.MethodGet, agentsPath, routes.User, routes.OwnOrganization, routes.AuditRead, listAgents),
	routes.At(http.MethodPost, agentsPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createAgent),
	routes.At(http.MethodGet, agentsPath+"/counts", routes.User, routes.OwnOrganization, routes.AuditRead, countAgents),
	routes.At(http.MethodGet, agentPath, routes.User, routes.OwnOrganization, routes.AuditRead, getAgent),
	routes.At(http.MethodDelete, agentPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, deleteAgent),
	routes.At(http.MethodGet, credentialsPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, listCredentials),
	routes.At(http.MethodPost, credentialsPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createCredential),
	routes.At(http.MethodDelete, credentialPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, deleteCredential),

	routes.At(http.MethodPost, oldPolicyPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, savePolicy),
	routes.At(http.MethodPut, oldPolicyPath+"/enable", routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, enablePolicies),
	routes.At(http.MethodPut, oldPolicyPath+"/disable", routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, disablePolicies),
	routes.At(http.MethodGet, policiesPath, routes.User, routes.OwnOrganization, routes.AuditRead, listPolicies),
	routes.At(http.MethodPost, policiesPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createPolicy),
	routes.At(http.MethodPost, policiesPath+"/validate", routes.User, routes.OwnOrganization, routes.AuditRead, validatePolicy),
	routes.At(http.MethodPost, policiesPath+"/explain", routes.User, routes.OwnOrganization, routes.AuditRead, explainPolicies),
	routes.At(http.MethodGet, policiesPath+"/summary", routes.User, routes.OwnOrganization, routes.AuditRead, summarizePolicies),
	routes.At(http.MethodGet, policiesPath+"/filter-definitions", routes.User, routes.OwnOrganization, routes.AuditRead, policyFilters),
	routes.At(http.MethodGet, policyPath, routes.User, routes.OwnOrganization, routes.AuditRead, getPolicy),
	routes.At(http.MethodPatch, policyPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, updatePolicy),
	routes.At(http.MethodPost, policyPath+"/clone", routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, clonePolicy),
	routes.At(http.MethodGet, policyPath+"/revisions", routes.Admin, routes.OwnOrganization, routes.AuditRead, listRevisions),
	routes.At(http.MethodGet, policyPath+"/shadow", routes.Admin, routes.OwnOrganization, routes.AuditRead, reportShadow),

	routes.At(http.MethodGet, approvalsPath, routes.User, routes.OwnOrganization, routes.AuditRead, listApprovals),
	routes.At(http.MethodGet, approvalPath, routes.User, routes.OwnOrganization, routes.AuditRead, getApproval),
	routes.At(http.MethodPost, approvalPath+"/approve", routes.User, routes.OwnOrganization, routes.AuditApproval, approveCall),
	routes.At(http.MethodPost, approvalPath+"/deny", routes.User, routes.OwnOrganization, routes.AuditApproval, denyCall),

	routes.At(http.MethodGet, auditPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, listAudit),
	routes.At(http.MethodGet, auditPath+"/export", routes.Admin, routes.OwnOrganization, routes.AuditRead, exportAudit),

	routes.At(http.MethodGet, refusedPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, listRefusedTokens),

	routes.At(http.MethodPost, userRevokePath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, revokeUser),
	routes.At(http.MethodGet, sessionsPath, routes.User, routes.OwnOrganization, routes.AuditRead, listSessions),
	routes.At(http.MethodDelete, sessionPath, routes.User, routes.OwnOrganization, routes.AuditConnection, endSession),
)
