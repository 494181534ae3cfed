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
	routes.At(http.MethodGet, keysPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, listKeys),
	routes.At(http.MethodPost, keysPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createKey),
	routes.At(http.MethodGet, keyPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, getKey),
	routes.At(http.MethodPatch, keyPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, disableKey),
	routes.At(http.MethodDelete, keyPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, revokeKey),
	routes.At(http.MethodGet, ownKeysPath, routes.User, routes.OwnOrganization, routes.AuditRead, listOwnKeys),
	routes.At(http.MethodPost, ownKeysPath, routes.User, routes.OwnOrganization, routes.AuditConnection, createOwnKey),
	routes.At(http.MethodDelete, ownKeyPath, routes.User, routes.OwnOrganization, routes.AuditConnection, revokeOwnKey),

	routes.At(http.MethodGet, limitsPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, listLimits),
	routes.At(http.MethodPost, limitsPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, rateLimits.serveCreate),
	routes.At(http.MethodGet, limitsPath+"/status", routes.Admin, routes.OwnOrganization, routes.AuditRead, limitStatus),
	routes.At(http.MethodGet, limitPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, rateLimits.serveGet),
	routes.At(http.MethodPut, limitPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, rateLimits.serveUpdate),
	routes.At(http.MethodDelete, limitPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, rateLimits.serveDelete),

	routes.At(http.MethodGet, providersPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, listProviders),
	routes.At(http.MethodPost, providersPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createProvider),
	routes.At(http.MethodGet, providerPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, getProvider),
	routes.At(http.MethodPut, providerPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, updateProvider),
	routes.At(http.MethodDelete, providerPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, deleteProvider),

	routes.At(http.MethodGet, mappingsPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, listMappings),
	routes.At(http.MethodPost, mappingsPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createMapping),
	routes.At(http.MethodGet, mappingPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, getMapping),
	routes.At(http.MethodPut, mappingPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, updateMapping),
	routes.At(http.MethodDelete, mappingPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, deleteMapping),

	routes.At(http.MethodGet, smartsPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, listSmart),
	routes.At(http.MethodPost, smartsPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, createSmart),
	routes.At(http.MethodPost, smartsPath+"/preview", routes.Admin, routes.OwnOrganization, routes.AuditRead, previewSmart),
	routes.At(http.MethodGet, smartPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, getSmart),
	routes.At(http.MethodPut, smartPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, updateSmart),
	routes.At(http.MethodDelete, smartPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, deleteSmart),

	routes.At(http.MethodGet, usagePath, routes.Admin, routes.OwnOrganization, routes.AuditRead, listUsage),
	routes.At(http.MethodGet, budgetsPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, listBudgets),
	routes.At(http.MethodPost, budgetsPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, budgets.serveCreate),
	routes.At(http.MethodGet, budgetPath, routes.Admin, routes.OwnOrganization, routes.AuditRead, budgets.serveGet),
	routes.At(http.MethodPut, budgetPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, budgets.serveUpdate),
	routes.At(http.MethodDelete, budgetPath, routes.Admin, routes.OwnOrganization, routes.AuditAdminWrite, budgets.serveDelete),
)
