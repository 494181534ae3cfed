// Package listfilter takes out of MCP's lists what their reader may not see: tools, resources, resource templates, prompts
// and tasks, in whole JSON answers and in event streams. Lists are known by their shape (`result.tools` and so on), so
// that an answer is filtered wherever it comes: on a stream that is resumed with Last-Event-ID, in a batch, on the stream
// of revision 2024-11-05.
//
// Nothing is decoded and written anew: entries are cut out of the text, so that order, members that nobody knows, number
// formats stay as they were. What is not a list passes byte for byte, but news of resources that their reader may not see do
// not. A filtered list says that it is for its reader alone (`cacheScope`, 2026-07-28 basic/utilities/caching), and its
// nextCursor, which servers make of the names of entries, is sealed.
package listfilter
