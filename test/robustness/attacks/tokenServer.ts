/** An API server with kube-apiserver's flags on a TLS port, where a user's token is the user's name. For tests of single vulnerabilities. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestApiServer, TestApiServerOptions, TestListener } from '#testing/apiServer'
import { type RawAnswer, rawHttp } from '../../integration/api/rawHttp.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

export interface TokenServer {
  readonly api: TestApiServer
  readonly listener: TestListener
  /** One request on a connection of its own. An object as the body is sent as JSON. */
  send(as: string, method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<RawAnswer>
  /** The answer's object, which must be there. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of every kind, looked into by tests
  json(as: string, method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<any>
  /** The answer's code, which must be below 500. */
  statusOf(as: string, method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<number>
  close(): Promise<void>
}

/** @param users name → groups; `admin` is one of the masters anyway */
export async function startTokenServer(
  users: Readonly<Record<string, readonly string[]>> = {},
  flags: readonly string[] = [],
  more: TestApiServerOptions = {},
): Promise<TokenServer> {
  const folder = fs.mkdtempSync(path.join(tmpdir(), 'skiff-tokens-'))
  const tokens = path.join(folder, 'tokens.csv')
  const lines = Object.entries({ admin: ['system:masters'], ...users }).map(([name, groups]) => `${name},${name},uid-${name},"${groups.join(',')}"\n`)
  fs.writeFileSync(tokens, lines.join(''), { mode: 0o600 })
  const api = await startServerWithFlags([`--token-auth-file=${tokens}`, ...flags], more)
  const listener = await api.listen()
  const send: TokenServer['send'] = (as, method, target, body, headers = {}) => {
    const sent = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
    const type = sent === undefined ? {} : { 'content-type': 'application/json' }
    return rawHttp(listener, { method, path: target, token: as, ...(sent === undefined ? {} : { body: sent }), headers: { ...type, ...headers } })
  }
  const json: TokenServer['json'] = async (as, method, target, body, headers) => {
    const answer = await send(as, method, target, body, headers)
    assert.ok(answer.status < 300, `${method} ${target}: ${answer.status} ${answer.body}`)
    return JSON.parse(answer.body.toString())
  }
  await json('admin', 'POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } })
  return {
    api,
    listener,
    send,
    json,
    async statusOf(as, method, target, body, headers) {
      const { status, body: text } = await send(as, method, target, body, headers)
      assert.ok(status < 500, `${method} ${target}: ${status} ${text.toString().slice(0, 300)}`)
      return status
    },
    async close() {
      await api.close()
      fs.rmSync(folder, { recursive: true, force: true })
    },
  }
}
