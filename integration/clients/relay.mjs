// relay.mjs ADDRESS SERVER: passes the address of a server on to the test that plays its client, with what the suite says about the
// client, and waits until that is done.
const [address, server] = process.argv.slice(2);
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const answer = await fetch(address, { method: 'POST', body: JSON.stringify({ server, context }) });
process.stderr.write(await answer.text());
process.exit(answer.ok ? 0 : 1);
