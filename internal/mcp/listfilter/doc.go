// Package listfilter removes the entries from MCP's lists that the reader may not see: tools, resources, resource
// templates, prompts and tasks, in whole JSON answers and in event streams. Lists are recognized by their form
// (`result.tools` and so on), so that an answer is filtered wherever it comes: on a stream that is resumed with
// Last-Event-ID, in a batch, on the stream of revision 2024-11-05.
//
// Nothing is decoded and written anew: entries are cut out of the text, so that order, unknown members and number
// formats stay as they were. Text that is not a list passes byte for byte, except for notifications about resources
// that the reader may not see. A filtered list says that it is for its reader alone (`cacheScope`, 2026-07-28
// basic/utilities/caching), and its nextCursor, which servers make from the names of entries, is sealed.
package listfilter
