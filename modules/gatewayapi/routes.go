package gatewayapi

import (
	"net/http"

	"github.com/durward-gateway/durward/modules/app/routes"
)

// These are the paths of the API.
const (
	adminPrefix = "/api/llm-gateway/admin/"
	userPrefix  = "/api/llm-gateway/user/"

	keysPath      = adminPrefix + "api-keys"
	keyPath       = keysPath + "/{id}"
	ownKeysPath   = userPrefix + "api-keys"
	ownKeyPath    = ownKeysPath + "/{id}"
	limitsPath    = adminPrefix + "rate-limits"
	limitPath     = limitsPath + "/{id}"
	providersPath = adminPrefix + "providers"
	providerPath  = providersPath + "/{id}"
	mappingsPath  = adminPrefix + "model-mappings"
	mappingPath   = mappingsPath + "/{id}"
	smartsPath    = adminPrefix + "smart-models"
	smartPath     = smartsPath + "/{id}"
	usagePath     = adminPrefix + "usage"
	budgetsPath   = adminPrefix + "budgets"
	budgetPath    = budgetsPath + "/{id}"
)

// table holds every address that this handler serves.
var table = routes.MustTable(
	routes.At(http.MethodGet, keysPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, listKeys).
		Gives("Lists the API keys of the organization.", []keyView{}),
	routes.At(http.MethodPost, keysPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createKey).
		Gives("Makes an API key for a user or a group. The key is shown this once.", newKeyView{}),
	routes.At(http.MethodGet, keyPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, getKey).
		Gives("Shows an API key.", keyView{}),
	routes.At(http.MethodPatch, keyPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, updateKey).
		Gives("Changes an API key, disables it, or enables it again.", keyView{}),
	routes.At(http.MethodPost, keyPath+"/rotate", routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, rotateKey).
		Gives("Gives an API key a new secret, which is shown this once; the former one ends at once, or at a time.", newKeyView{}),
	routes.At(http.MethodDelete, keyPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, revokeKey).
		Gives("Revokes an API key.", revokedKeyView{}),
	routes.At(http.MethodGet, ownKeysPath, routes.User, routes.OwnOrganization, routes.AuditRead, listOwnKeys).
		Gives("Lists your own API keys.", []keyView{}),
	routes.At(http.MethodPost, ownKeysPath, routes.User, routes.OwnOrganization, routes.AuditConnection, createOwnKey).
		Gives("Makes an API key for yourself. The key is shown this once.", newKeyView{}),
	routes.At(http.MethodDelete, ownKeyPath, routes.User, routes.OwnOrganization, routes.AuditConnection, revokeOwnKey).
		Gives("Revokes an API key of your own.", revokedKeyView{}),

	routes.At(http.MethodGet, limitsPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, listLimits).
		Gives("Lists the rate limits.", []limitView{}),
	routes.At(http.MethodPost, limitsPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, rateLimits.serveCreate).
		Gives("Makes a rate limit.", limitView{}).Named("createLimit"),
	routes.At(http.MethodGet, limitsPath+"/status", routes.Auditor, routes.OwnOrganization, routes.AuditRead, limitStatus).
		Gives("Shows how full the rate limits are, from the counters that enforce them.", []limitStatusView{}),
	routes.At(http.MethodGet, limitPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, rateLimits.serveGet).
		Gives("Shows a rate limit.", limitView{}).Named("getLimit"),
	routes.At(http.MethodPut, limitPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, rateLimits.serveUpdate).
		Gives("Changes a rate limit.", limitView{}).Named("updateLimit"),
	routes.At(http.MethodDelete, limitPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, rateLimits.serveDelete).
		Gives("Deletes a rate limit.", deletedView{}).Named("deleteLimit"),

	routes.At(http.MethodGet, providersPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, listProviders).
		Gives("Lists the LLM providers: those made here, and those of the configuration.", []providerView{}),
	routes.At(http.MethodPost, providersPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createProvider).
		Gives("Adds an LLM provider.", providerView{}),
	routes.At(http.MethodGet, providerPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, getProvider).
		Gives("Shows an LLM provider.", providerView{}),
	routes.At(http.MethodPut, providerPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, updateProvider).
		Gives("Changes an LLM provider that was made here.", providerView{}),
	routes.At(http.MethodDelete, providerPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, deleteProvider).
		Gives("Deletes an LLM provider that was made here.", deletedView{}),

	routes.At(http.MethodGet, mappingsPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, listMappings).
		Gives("Lists the aliases of models.", []mappingView{}),
	routes.At(http.MethodPost, mappingsPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createMapping).
		Gives("Makes an alias for models of providers.", mappingView{}),
	routes.At(http.MethodGet, mappingPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, getMapping).
		Gives("Shows an alias.", mappingView{}),
	routes.At(http.MethodPut, mappingPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, updateMapping).
		Gives("Changes an alias.", mappingView{}),
	routes.At(http.MethodDelete, mappingPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, deleteMapping).
		Gives("Deletes an alias that nothing refers to.", deletedView{}),

	routes.At(http.MethodGet, smartsPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, listSmart).
		Gives("Lists the smart models.", []smartView{}),
	routes.At(http.MethodPost, smartsPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createSmart).
		Gives("Makes a smart model.", smartView{}),
	routes.At(http.MethodPost, smartsPath+"/preview", routes.Auditor, routes.OwnOrganization, routes.AuditRead, previewSmart).
		Gives("Shows which alias a smart model would choose for an input.", previewView{}),
	routes.At(http.MethodPost, smartPath+"/eval", routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, evalSmart).
		Makes("Starts a job that decides about labelled examples as a smart model does, and scores the decisions.", routes.JobView{}),
	routes.At(http.MethodGet, smartPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, getSmart).
		Gives("Shows a smart model.", smartView{}),
	routes.At(http.MethodPut, smartPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, updateSmart).
		Gives("Changes a smart model.", smartView{}),
	routes.At(http.MethodDelete, smartPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, deleteSmart).
		Gives("Deletes a smart model.", deletedView{}),

	routes.At(http.MethodGet, usagePath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, listUsage).
		Gives("Sums usage and cost by what you name, and over time.", usagesView{}).Or(routes.CSV),
	routes.At(http.MethodGet, budgetsPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, listBudgets).
		Gives("Lists the budgets, with what is spent of each.", []budgetView{}),
	routes.At(http.MethodPost, budgetsPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, budgets.serveCreate).
		Gives("Makes a budget.", budgetView{}).Named("createBudget"),
	routes.At(http.MethodGet, budgetPath, routes.Auditor, routes.OwnOrganization, routes.AuditRead, budgets.serveGet).
		Gives("Shows a budget.", budgetView{}).Named("getBudget"),
	routes.At(http.MethodPut, budgetPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, budgets.serveUpdate).
		Gives("Changes a budget.", budgetView{}).Named("updateBudget"),
	routes.At(http.MethodDelete, budgetPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, budgets.serveDelete).
		Gives("Deletes a budget.", deletedView{}).Named("deleteBudget"),
)
