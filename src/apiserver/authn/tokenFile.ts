/**
 * Tokens from a file (L3): one line of CSV per token, `token,name,uid,"group1,group2"`. Read once, when the server starts.
 * Upstream: apiserver/pkg/authentication/token/tokenfile.
 */
import type { Logger } from '#base/log'
import type { UserInfo } from '../core/request.ts'
import { withAuthenticatedGroup } from './authenticatedGroup.ts'
import { parseCsv } from './csv.ts'
import { audienceAgnostic, type TokenAuthenticator } from './tokenAuthenticator.ts'

export type StaticTokens = ReadonlyMap<string, UserInfo>

/** @throws Error that names the file for a record of fewer than three fields, and the line for a stray quote */
export function parseTokenFile(text: string, path: string, log: Logger): StaticTokens {
  const tokens = new Map<string, UserInfo>()
  parseCsv(text).forEach((record, at) => {
    if (record.length < 3) throw new Error(`token file '${path}' must have at least 3 columns (token, user name, user uid), found ${record.length}`)
    const [token = '', name = '', uid = '', groups] = record
    if (token === '') {
      log.warn('An empty token in the token file is left out', { path, record: at + 1 })
      return
    }
    if (tokens.has(token)) log.warn('A token is in the token file twice: the last one counts', { path, record: at + 1 })
    tokens.set(token, withAuthenticatedGroup({ name, ...(uid ? { uid } : {}), groups: groups === undefined ? [] : groups.split(',') }))
  })
  return tokens
}

export function tokenFileAuthenticator(tokens: StaticTokens, apiAudiences: readonly string[]): TokenAuthenticator {
  return audienceAgnostic('tokenfile', apiAudiences, (token) => tokens.get(token))
}
