package platformapi

import (
	"net/http"

	"github.com/durward-gateway/durward/modules/app"
)

// Paths of the API.
const (
	serversPath   = "/api/servers"
	serverPath    = serversPath + "/{server_id}"
	bySlugPath    = serversPath + "/by-slug/{slug}"
	connectPath   = "/connect"
	statusPath    = "/connection"
	directoryPath = "/api/server-directory"
	entryPath     = directoryPath + "/{id}"

	agentsPath     = "/api/agents"
	agentPath      = agentsPath + "/{agent_id}"
	oldPolicyPath  = "/api/policy"
	policiesPath   = "/api/v2/policies"
	policyPath     = policiesPath + "/{policy_id}"
	toolsPath      = serverPath + "/tools"
	userRevokePath = "/api/users/{user_id}/revoke"
	approvalsPath  = "/api/approvals"
	approvalPath   = approvalsPath + "/{approval_id}"
	auditPath      = "/api/audit"
)

// table is every address that this handler serves. Who may call a route, whose objects it sees and how it is audited
// stand beside its path: a route that does not say so stops the program at its start.
var table = mustTable([]route{
	{http.MethodGet, app.HealthPath, public, noOrganization, auditNone, health},
	{http.MethodHead, app.HealthPath, public, noOrganization, auditNone, health},
	{http.MethodGet, app.ReadyPath, public, noOrganization, auditNone, ready},
	{http.MethodHead, app.ReadyPath, public, noOrganization, auditNone, ready},

	{http.MethodGet, serversPath, user, ownOrganization, auditRead, listServers},
	{http.MethodPost, serversPath, admin, ownOrganization, auditAdminWrite, createServer},
	{http.MethodGet, serverPath, user, ownOrganization, auditRead, getServer},
	{http.MethodPut, serverPath, admin, ownOrganization, auditAdminWrite, updateServer},
	{http.MethodDelete, serverPath, admin, ownOrganization, auditAdminWrite, deleteServer},
	{http.MethodPost, serverPath + connectPath, user, ownOrganization, auditConnection, connect},
	{http.MethodGet, serverPath + statusPath, user, ownOrganization, auditRead, connectionStatus},
	{http.MethodDelete, serverPath + statusPath, user, ownOrganization, auditConnection, disconnect},
	{http.MethodGet, bySlugPath, user, ownOrganization, auditRead, getServer},
	{http.MethodPost, bySlugPath + connectPath, user, ownOrganization, auditConnection, connect},
	{http.MethodGet, bySlugPath + statusPath, user, ownOrganization, auditRead, connectionStatus},
	{http.MethodDelete, bySlugPath + statusPath, user, ownOrganization, auditConnection, disconnect},
	{http.MethodGet, toolsPath, admin, ownOrganization, auditRead, listTools},
	{http.MethodPost, toolsPath + "/accept", admin, ownOrganization, auditAdminWrite, acceptTool},

	{http.MethodGet, directoryPath, user, ownOrganization, auditRead, listEntries},
	{http.MethodPost, directoryPath, admin, ownOrganization, auditAdminWrite, createEntry},
	{http.MethodGet, entryPath, user, ownOrganization, auditRead, getEntry},
	{http.MethodPut, entryPath, admin, ownOrganization, auditAdminWrite, updateEntry},
	{http.MethodDelete, entryPath, admin, ownOrganization, auditAdminWrite, deleteEntry},

	{http.MethodGet, agentsPath, user, ownOrganization, auditRead, listAgents},
	{http.MethodPost, agentsPath, admin, ownOrganization, auditAdminWrite, createAgent},
	{http.MethodGet, agentsPath + "/counts", user, ownOrganization, auditRead, countAgents},
	{http.MethodGet, agentPath, user, ownOrganization, auditRead, getAgent},
	{http.MethodDelete, agentPath, admin, ownOrganization, auditAdminWrite, deleteAgent},

	{http.MethodPost, oldPolicyPath, admin, ownOrganization, auditAdminWrite, savePolicy},
	{http.MethodPut, oldPolicyPath + "/enable", admin, ownOrganization, auditAdminWrite, enablePolicies},
	{http.MethodPut, oldPolicyPath + "/disable", admin, ownOrganization, auditAdminWrite, disablePolicies},
	{http.MethodGet, policiesPath, user, ownOrganization, auditRead, listPolicies},
	{http.MethodPost, policiesPath, admin, ownOrganization, auditAdminWrite, createPolicy},
	{http.MethodPost, policiesPath + "/validate", user, ownOrganization, auditRead, validatePolicy},
	{http.MethodPost, policiesPath + "/explain", user, ownOrganization, auditRead, explainPolicies},
	{http.MethodGet, policiesPath + "/summary", user, ownOrganization, auditRead, summarizePolicies},
	{http.MethodGet, policiesPath + "/filter-definitions", user, ownOrganization, auditRead, policyFilters},
	{http.MethodGet, policyPath, user, ownOrganization, auditRead, getPolicy},
	{http.MethodPatch, policyPath, admin, ownOrganization, auditAdminWrite, updatePolicy},
	{http.MethodPost, policyPath + "/clone", admin, ownOrganization, auditAdminWrite, clonePolicy},
	{http.MethodGet, policyPath + "/revisions", admin, ownOrganization, auditRead, listRevisions},
	{http.MethodGet, policyPath + "/shadow", admin, ownOrganization, auditRead, reportShadow},

	{http.MethodGet, approvalsPath, user, ownOrganization, auditRead, listApprovals},
	{http.MethodGet, approvalPath, user, ownOrganization, auditRead, getApproval},
	{http.MethodPost, approvalPath + "/approve", user, ownOrganization, auditApproval, approveCall},
	{http.MethodPost, approvalPath + "/deny", user, ownOrganization, auditApproval, denyCall},

	{http.MethodGet, auditPath, admin, ownOrganization, auditRead, listAudit},
	{http.MethodGet, auditPath + "/export", admin, ownOrganization, auditRead, exportAudit},

	{http.MethodPost, userRevokePath, admin, ownOrganization, auditAdminWrite, revokeUser},
})
