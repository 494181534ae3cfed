package platformapi

import (
	"net/http"

	"github.com/durward-gateway/durward/modules/app/fixed"
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
	allToolsPath      = "/api/tools"
	registeredPath    = serverPath + "/registration"
	mePath            = "/api/me"
	usersPath         = "/api/users"
	userPath          = usersPath + "/{user_id}"
	userRevokePath    = userPath + "/revoke"
	offboardPath      = userPath + "/offboard"
	connectionsPath   = serverPath + "/connections"
	othersPath        = connectionsPath + "/{user_id}"
	sessionsPath      = "/api/sessions"
	sessionPath       = sessionsPath + "/{session_id}"
	approvalsPath     = "/api/approvals"
	approvalPath      = approvalsPath + "/{approval_id}"
	deliveriesPath    = "/api/webhook-deliveries"
	auditPath         = "/api/audit"
	organizationsPath = "/api/organizations"
	organizationPath  = organizationsPath + "/{organization_id}"
	refusedPath       = "/api/refused-tokens"
	snippetsPath      = "/api/clients/snippets"
	limitsPath        = "/api/limits"
	healthDetailPath  = "/api/health/detail"
	jobsPath          = "/api/jobs"
	configurationPath = "/api/configuration"
	fixedPath         = "/api/config"
	jobPath           = jobsPath + "/{job_id}"
)

// table is every address that this handler serves. Beside its path a route declares who may call it, whose objects it
// sees and how it is audited. A route that does not declare all of this stops the program at its start.
var table = routes.MustTable(
	routes.At(http.MethodGet, paths.Health, routes.Public, routes.NoOrganization, routes.AuditNone, health).
		Gives("Says that the process lives.", healthView{}),
	routes.At(http.MethodHead, paths.Health, routes.Public, routes.NoOrganization, routes.AuditNone, health).
		Gives("Says that the process lives.", healthView{}).Named("healthHead"),
	routes.At(http.MethodGet, paths.Ready, routes.Public, routes.NoOrganization, routes.AuditNone, ready).
		Gives("Says whether requests should be sent here.", healthView{}),
	routes.At(http.MethodHead, paths.Ready, routes.Public, routes.NoOrganization, routes.AuditNone, ready).
		Gives("Says whether requests should be sent here.", healthView{}).Named("readyHead"),

	routes.At(http.MethodGet, healthDetailPath, routes.Operator, routes.OwnOrganization, routes.AuditRead, healthDetail).
		Gives("Tells how each part of the node that answers is, in words.", healthDetailView{}),

	routes.At(http.MethodGet, fixedPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, showFixed).
		Gives("Shows what the configuration of the gateway fixed, and where that is written.", fixed.ConfigView{}),

	routes.At(http.MethodGet, paths.OpenAPI, routes.Public, routes.NoOrganization, routes.AuditNone, describeAPI).
		Gives("Describes this API.", map[string]any{}),
	routes.At(http.MethodGet, paths.Docs, routes.Public, routes.NoOrganization, routes.AuditNone, showAPI).
		Writes("Shows the description of this API as a page.", "text/html"),

	routes.At(http.MethodGet, serversPath, routes.User, routes.OwnOrganization, routes.AuditRead, listServers).
		Gives("Lists the servers of the organization, with the state of your own connection to each.", pageView[serverView]{}),
	routes.At(http.MethodPost, serversPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, createServer).
		Gives("Makes a server from an entry of the directory, and tries it.", createdView{}),
	routes.At(http.MethodGet, serverPath, routes.User, routes.OwnOrganization, routes.AuditRead, getServer).
		Gives("Shows a server.", serverView{}),
	routes.At(http.MethodPost, serverPath+testPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, testServer).
		Gives("Tries a server: whether it can be reached, what it speaks, and how it authenticates.", testView{}),
	routes.At(http.MethodPut, serverPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, updateServer).
		Gives("Changes a server.", serverView{}),
	routes.At(http.MethodDelete, serverPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, deleteServer).
		Gives("Deletes a server with all connections to it.", serverView{}),
	routes.At(http.MethodPost, serverPath+connectPath, routes.User, routes.OwnOrganization, routes.AuditConnection, connect).
		Gives("Begins the connection of your account at a server, or stores a credential that you have.", connectView{}),
	routes.At(http.MethodGet, serverPath+statusPath, routes.User, routes.OwnOrganization, routes.AuditRead, connectionStatus).
		Gives("Shows the state of your connection to a server.", connectionStatusView{}),
	routes.At(http.MethodDelete, serverPath+statusPath, routes.User, routes.OwnOrganization, routes.AuditConnection, disconnect).
		Gives("Ends your connection to a server, at the provider too.", nil),
	routes.At(http.MethodGet, bySlugPath, routes.User, routes.OwnOrganization, routes.AuditRead, getServer).
		Gives("Shows a server.", serverView{}),
	routes.At(http.MethodPost, bySlugPath+connectPath, routes.User, routes.OwnOrganization, routes.AuditConnection, connect).
		Gives("Begins the connection of your account at a server, or stores a credential that you have.", connectView{}),
	routes.At(http.MethodGet, bySlugPath+statusPath, routes.User, routes.OwnOrganization, routes.AuditRead, connectionStatus).
		Gives("Shows the state of your connection to a server.", connectionStatusView{}),
	routes.At(http.MethodDelete, bySlugPath+statusPath, routes.User, routes.OwnOrganization, routes.AuditConnection, disconnect).
		Gives("Ends your connection to a server, at the provider too.", nil),
	routes.At(http.MethodDelete, registeredPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, forgetRegistration).
		Gives("Forgets the OAuth client that was registered for a server by itself.", nil),
	routes.At(http.MethodGet, connectionsPath, routes.Operator, routes.OwnOrganization, routes.AuditRead, listServerConnections).
		Gives("Lists the connections of all users to a server, without credentials.", keyedView[serverConnectionView]{}),
	routes.At(http.MethodDelete, othersPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, disconnectOther).
		Gives("Ends a user's connection to a server, at the provider too.", nil),
	routes.At(http.MethodGet, toolsPath, routes.PolicyEditor, routes.OwnOrganization, routes.AuditRead, listTools).
		Gives("Lists the tools of a server that were seen, with what is accepted of each.", pageView[toolView]{}),
	routes.At(http.MethodPost, toolsPath+"/accept", routes.PolicyEditor, routes.OwnOrganization, routes.AuditAdminWrite, acceptTool).
		Gives("Accepts a tool as it was seen last.", toolView{}),

	routes.At(http.MethodGet, allToolsPath, routes.PolicyEditor, routes.OwnOrganization, routes.AuditRead, listAllTools).
		Gives("Lists the tools of all servers that were seen, or those that wait for a decision.", keyedView[serverToolView]{}),
	routes.At(http.MethodPost, allToolsPath+"/accept", routes.PolicyEditor, routes.OwnOrganization, routes.AuditAdminWrite, acceptTools).
		Gives("Accepts several tools as they were seen last: all of them or none.", acceptedToolsView{}),

	routes.At(http.MethodGet, organizationsPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, listOrganizations).
		Gives("Lists the organizations.", organizationsView{}),
	routes.At(http.MethodDelete, organizationPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, deleteOrganization).
		Gives("Deletes an organization that has nothing.", nil),

	routes.At(http.MethodGet, configurationPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, exportConfiguration).
		Gives("Gives the objects of the organization as a file that can be applied.", exportView{}),
	routes.At(http.MethodPost, configurationPath+"/plan", routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, planConfiguration).
		Gives("Shows what applying files would change.", plansView{}),
	routes.At(http.MethodPost, configurationPath+"/apply", routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, applyConfiguration).
		Gives("Makes objects of the organization equal to what files say: all changes or none.", plansView{}),

	routes.At(http.MethodGet, snippetsPath, routes.User, routes.OwnOrganization, routes.AuditRead, clientSnippets).
		Gives("Gives the text with which each client is set up for a server.", snippetsView{}),

	routes.At(http.MethodGet, directoryPath, routes.User, routes.OwnOrganization, routes.AuditRead, listEntries).
		Gives("Lists the server directory.", pageView[entryView]{}),
	routes.At(http.MethodPost, directoryPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, createEntry).
		Gives("Adds an entry to the server directory.", entryView{}),
	routes.At(http.MethodGet, entryPath, routes.User, routes.OwnOrganization, routes.AuditRead, getEntry).
		Gives("Shows an entry of the server directory.", entryView{}),
	routes.At(http.MethodPut, entryPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, updateEntry).
		Gives("Changes an entry of the server directory that was made here.", entryView{}),
	routes.At(http.MethodDelete, entryPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, deleteEntry).
		Gives("Deletes an entry of the server directory that no server uses.", nil),

	routes.At(http.MethodGet, agentsPath, routes.User, routes.OwnOrganization, routes.AuditRead, listAgents).
		Gives("Lists the agents of the organization.", pageView[agentView]{}),
	routes.At(http.MethodPost, agentsPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, createAgent).
		Gives("Registers an OAuth client as an agent.", agentView{}),
	routes.At(http.MethodGet, agentsPath+"/counts", routes.User, routes.OwnOrganization, routes.AuditRead, countAgents).
		Gives("Counts the agents of the organization.", agentCountsView{}),
	routes.At(http.MethodGet, agentPath, routes.User, routes.OwnOrganization, routes.AuditRead, getAgent).
		Gives("Shows an agent.", agentView{}),
	routes.At(http.MethodPatch, agentPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, updateAgent).
		Gives("Changes an agent.", agentView{}),
	routes.At(http.MethodDelete, agentPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, deleteAgent).
		Gives("Deletes an agent, and takes it out of the policies that name it.", nil),
	routes.At(http.MethodGet, credentialsPath, routes.Operator, routes.OwnOrganization, routes.AuditRead, listCredentials).
		Gives("Lists the credentials with which an agent logs in without a person.", credentialsView{}),
	routes.At(http.MethodPost, credentialsPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createCredential).
		Gives("Makes a secret for an agent, or keeps its public keys. The secret is shown this once.", newCredentialView{}),
	routes.At(http.MethodDelete, credentialPath, routes.Operator, routes.OwnOrganization, routes.AuditAdminWrite, deleteCredential).
		Gives("Deletes a credential of an agent; tokens that it got are refused.", nil),

	routes.At(http.MethodPost, oldPolicyPath, routes.PolicyEditor, routes.OwnOrganization, routes.AuditAdminWrite, savePolicy).
		Gives("Makes a policy, or changes the one with that id or name.", savedPolicy{}),
	routes.At(http.MethodPut, oldPolicyPath+"/enable", routes.PolicyEditor, routes.OwnOrganization, routes.AuditAdminWrite, enablePolicies).
		Gives("Makes policies active.", enabledView{}),
	routes.At(http.MethodPut, oldPolicyPath+"/disable", routes.PolicyEditor, routes.OwnOrganization, routes.AuditAdminWrite, disablePolicies).
		Gives("Makes policies inactive.", disabledView{}),
	routes.At(http.MethodGet, policiesPath, routes.User, routes.OwnOrganization, routes.AuditRead, listPolicies).
		Gives("Lists the policies of the organization.", pageView[policyItem]{}),
	routes.At(http.MethodPost, policiesPath, routes.PolicyEditor, routes.OwnOrganization, routes.AuditAdminWrite, createPolicy).
		Makes("Makes a policy.", wrappedPolicy{}),
	routes.At(http.MethodPost, policiesPath+"/validate", routes.User, routes.OwnOrganization, routes.AuditRead, validatePolicy).
		Gives("Checks a policy without keeping it.", validationView{}),
	routes.At(http.MethodPost, policiesPath+"/explain", routes.User, routes.OwnOrganization, routes.AuditRead, explainPolicies).
		Gives("Shows the decision of the policies on a call, or on each of several, and its reason, without making the call.", explained{}),
	routes.At(http.MethodPost, policiesPath+"/suggest", routes.PolicyEditor, routes.OwnOrganization, routes.AuditAdminWrite, suggestPolicy).
		Gives("Makes the narrowest policy that allows exactly some recorded calls, without keeping it.", suggestion{}),
	routes.At(http.MethodGet, policiesPath+"/summary", routes.User, routes.OwnOrganization, routes.AuditRead, summarizePolicies).
		Gives("Counts the policies by their status.", summaryView{}),
	routes.At(http.MethodGet, policiesPath+"/filter-definitions", routes.User, routes.OwnOrganization, routes.AuditRead, policyFilters).
		Gives("Gives the filters for the list of policies, with their present values.", []filterDefinition{}),
	routes.At(http.MethodGet, policyPath, routes.User, routes.OwnOrganization, routes.AuditRead, getPolicy).
		Gives("Shows a policy.", wrappedPolicy{}),
	routes.At(http.MethodPatch, policyPath, routes.PolicyEditor, routes.OwnOrganization, routes.AuditAdminWrite, updatePolicy).
		Gives("Changes a policy.", wrappedPolicy{}),
	routes.At(http.MethodPost, policyPath+"/clone", routes.PolicyEditor, routes.OwnOrganization, routes.AuditAdminWrite, clonePolicy).
		Gives("Copies a policy as a draft.", wrappedPolicy{}),
	routes.At(http.MethodGet, policyPath+"/revisions", routes.PolicyEditor, routes.OwnOrganization, routes.AuditRead, listRevisions).
		Gives("Lists the revisions of a policy, newest first.", pageView[revisionView]{}),
	routes.At(http.MethodGet, policyPath+"/shadow", routes.PolicyEditor, routes.OwnOrganization, routes.AuditRead, reportShadow).
		Gives("Shows what a draft in the shadow would have decided otherwise.", shadowReport{}),
	routes.At(http.MethodPost, policyPath+"/replay", routes.PolicyEditor, routes.OwnOrganization, routes.AuditAdminWrite, replayPolicy).
		Makes("Starts a job that judges the recorded calls by a policy as it is stored, and tells what it would decide otherwise.", routes.JobView{}),

	routes.At(http.MethodGet, jobsPath, routes.PolicyEditor, routes.OwnOrganization, routes.AuditRead, listJobs).
		Gives("Lists your own jobs, newest first.", keyedView[routes.JobView]{}),
	routes.At(http.MethodGet, jobPath, routes.PolicyEditor, routes.OwnOrganization, routes.AuditRead, getJob).
		Gives("Shows a job, or follows it as an event stream that ends with it.", routes.JobView{}).Or(routes.Events),
	routes.At(http.MethodDelete, jobPath, routes.PolicyEditor, routes.OwnOrganization, routes.AuditAdminWrite, cancelJob).
		Gives("Cancels a job that is not over.", routes.JobView{}),

	routes.At(http.MethodGet, approvalsPath, routes.User, routes.OwnOrganization, routes.AuditRead, listApprovals).
		Gives("Lists held calls: your own, or those of all users for administrators and auditors. As an event stream, sends the page again when it changes.", pageView[approvalView]{}).Or(routes.Events),
	routes.At(http.MethodGet, approvalPath, routes.User, routes.OwnOrganization, routes.AuditRead, getApproval).
		Gives("Shows a held call.", approvalView{}),
	routes.At(http.MethodPost, approvalPath+"/approve", routes.User, routes.OwnOrganization, routes.AuditApproval, approveCall).
		Gives("Lets a held call go on.", approvalView{}),
	routes.At(http.MethodPost, approvalPath+"/deny", routes.User, routes.OwnOrganization, routes.AuditApproval, denyCall).
		Gives("Refuses a held call.", approvalView{}),
	routes.At(http.MethodGet, deliveriesPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, listDeliveries).
		Gives("Lists the announcements of held calls, and how their delivery went, newest first.", keyedView[deliveryView]{}),

	routes.At(http.MethodGet, auditPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, listAudit).
		Gives("Searches the audit log, newest first: pages that are counted, or, with a cursor, any number of rows.", auditPage{}),
	routes.At(http.MethodGet, auditPath+"/mine", routes.User, routes.OwnOrganization, routes.AuditRead, listOwnAudit).
		Gives("Lists your own calls, also those that were refused, newest first.", auditRows[ownCallView]{}),
	routes.At(http.MethodGet, auditPath+"/status", routes.Auditor, routes.OwnOrganization, routes.AuditRead, auditStatus).
		Gives("Shows where the audit log stands: the newest record, what is not in the store yet, the last checkpoint.", auditStatusView{}),
	routes.At(http.MethodGet, auditPath+"/export", routes.Auditor, routes.OwnOrganization, routes.AuditRead, exportAudit).
		Writes("Exports the audit log, oldest first, with the hashes that chain its records.", "application/x-ndjson"),

	routes.At(http.MethodGet, limitsPath+"/mine", routes.User, routes.OwnOrganization, routes.AuditRead, listOwnLimits).
		Gives("Shows the rate limits and budgets that bound you, and how full they are.", ownLimitsView{}),

	routes.At(http.MethodGet, refusedPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, listRefusedTokens).
		Gives("Lists the tokens that were refused last, with their claims and what would accept them.", refusedTokensView{}),

	routes.At(http.MethodGet, mePath, routes.User, routes.OwnOrganization, routes.AuditRead, showMe).
		Gives("Shows what the gateway takes you for, and what you may do.", meView{}),
	routes.At(http.MethodGet, usersPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, listUsers).
		Gives("Lists the users of the organization.", keyedView[userView]{}),
	routes.At(http.MethodGet, userPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, getUser).
		Gives("Shows a user.", userView{}),
	routes.At(http.MethodPost, userRevokePath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, revokeUser).
		Gives("Refuses all present tokens of a user, and ends their streams and calls.", revokedUserView{}),
	routes.At(http.MethodPost, offboardPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, offboardUser).
		Gives("Ends everything of a user, or counts it first.", offboardingView{}),
	routes.At(http.MethodGet, sessionsPath, routes.User, routes.OwnOrganization, routes.AuditRead, listSessions).
		Gives("Lists your logins with clients; an administrator or auditor names another user.", pageView[sessionView]{}),
	routes.At(http.MethodDelete, sessionPath, routes.User, routes.OwnOrganization, routes.AuditConnection, endSession).
		Gives("Ends a login with a client, on every node.", nil),
)
