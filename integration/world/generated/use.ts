// Uses the types that openapi-typescript makes of the gateway's /openapi.json, as main.go uses its client.
//
//   node use.ts ADDRESS TOKEN
import createClient from 'openapi-fetch'
import type { paths } from './api'

declare const process: { argv: string[] }
const [address, token] = process.argv.slice(2)
const client = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } })

const made = await client.POST('/api/server-directory', { body: { name: 'Made by TypeScript', url: 'https://ts.example.com/mcp' } })
if (!made.data) throw new Error(`making an entry: ${JSON.stringify(made.error)}`)
const id: string = made.data.id
const read = await client.GET('/api/server-directory/{id}', { params: { path: { id } } })
if (read.data?.name !== 'Made by TypeScript') throw new Error(`reading it: ${JSON.stringify(read.error)}`)
const missing = await client.GET('/api/server-directory/{id}', { params: { path: { id: '0190cccc-0000-7000-8000-000000000001' } } })
if (!missing.error || !('error' in missing.error) || missing.error.error !== 'DirectoryNotFound') throw new Error('one that does not exist is there')
console.log(read.data.slug)
