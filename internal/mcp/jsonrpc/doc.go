// Package jsonrpc reads the JSON-RPC 2.0 envelope of MCP messages, in one strict pass over the whole body, and writes
// error responses.
//
// The values on which a policy is decided (method, params.name, params.uri, params.taskId, the protocol version in
// params._meta) must be the values on which the upstream acts. So a body is read with internal/strictjson, and
// members whose names differ from those only in case are refused too: an upstream whose reader folds case would take
// "METHOD" for "method" (attack M04, CVE-2026-27896). Everything else passes unread and unchanged.
//
// In the revision 2026-07-28 and later, headers mirror parts of the body; CheckHeaders compares the two.
package jsonrpc
