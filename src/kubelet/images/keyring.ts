/**
 * Which credentials an image is pulled with (L3, pure): Docker configurations out of pull secrets and plugins, matched by host, port and path with wildcards.
 * Upstream: pkg/credentialprovider/keyring.go, config.go, secrets.go (v1.36).
 */
import { createHash } from 'node:crypto'
import type { AuthConfig } from '#grpc/criTypes'
import { repositoryOf } from '../core/imageReference.ts'

/** The source of credentials; absent: the node's own, for every pod. */
export interface CredentialSource {
  readonly secret?: { readonly uid: string; readonly namespace: string; readonly name: string } | undefined
  readonly serviceAccount?: { readonly uid: string; readonly namespace: string; readonly name: string } | undefined
}

export interface Credentials {
  readonly auth: AuthConfig
  readonly source?: CredentialSource | undefined
}

export interface DockerConfigEntry {
  readonly username?: string | undefined
  readonly password?: string | undefined
}

/** Registry pattern → credentials. */
export type DockerConfig = Readonly<Record<string, DockerConfigEntry>>

export interface KeyringConfig {
  readonly config: DockerConfig
  readonly source?: CredentialSource | undefined
}

/** What Docker Hub's entry is called in every Docker configuration. */
const defaultRegistryKey = 'index.docker.io'

/** A hash that changes with the credentials and does not reveal them. */
export function hashOf(auth: AuthConfig): string {
  return createHash('sha256').update(JSON.stringify(auth)).digest('hex')
}

/** All credentials that may fit, the more specific patterns first; none: the registry is asked without. */
export function lookUpCredentials(image: string, configs: readonly KeyringConfig[]): Credentials[] {
  const repository = repositoryOf(image)
  const byKey = new Map<string, Credentials[]>()
  for (const { config, source } of configs) {
    for (const [location, { username = '', password = '' }] of Object.entries(config)) {
      const key = keyOf(location)
      if (key === undefined) continue
      const credentials: Credentials = { auth: { username, password }, ...(source ? { source } : {}) }
      byKey.set(key, [...(byKey.get(key) ?? []), credentials])
    }
  }
  const keys = [...byKey.keys()].sort().reverse()
  const fitting = keys.filter((key) => matchesImage(key, repository)).flatMap((key) => byKey.get(key) ?? [])
  if (fitting.length > 0) return fitting
  return isDefaultRegistry(repository) ? (byKey.get(defaultRegistryKey) ?? []) : []
}

/** Host and path of an entry, without the scheme and the API version that old clients wrote; undefined for what is no address. */
function keyOf(location: string): string | undefined {
  const url = split(location.replace(/^https?:\/\//, ''))
  if (!url) return undefined
  const path = /^\/v[12]\//.test(url.path) ? url.path.slice(3) : url.path
  return path === '' || path === '/' ? url.authority : `${url.authority}${path}`
}

interface SplitUrl {
  readonly authority: string
  readonly parts: readonly string[]
  readonly port: string
  readonly path: string
}

function split(text: string): SplitUrl | undefined {
  const slash = text.indexOf('/')
  const authority = slash < 0 ? text : text.slice(0, slash)
  if (authority === '' || /[\s?#@]/.test(authority)) return undefined
  const [host = '', port = ''] = authority.split(':')
  return { authority, parts: host.split('.'), port, path: slash < 0 ? '' : text.slice(slash) }
}

/** Whether a pattern such as `*.example.com:5000/team` fits a repository: a wildcard stands for one label of the host or a part of it. */
export function matchesImage(pattern: string, repository: string): boolean {
  const glob = split(pattern)
  const target = split(repository)
  if (!glob || !target || glob.parts.length !== target.parts.length || !target.path.startsWith(glob.path)) return false
  if (glob.port !== target.port) return false
  return glob.parts.every((part, index) => globMatches(part, target.parts[index] ?? ''))
}

function globMatches(glob: string, text: string): boolean {
  const pattern = glob
    .replace(/[.+^${}()|\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.')
  try {
    return new RegExp(`^${pattern}$`).test(text)
  } catch {
    // An unfinished bracket matches nothing.
    return false
  }
}

function isDefaultRegistry(repository: string): boolean {
  const [first = '', ...rest] = repository.split('/')
  return first !== '' && (rest.length === 0 || first === 'docker.io' || first === 'index.docker.io' || !/[.:]/.test(first))
}

export interface PullSecret {
  readonly metadata: { readonly uid?: string | undefined; readonly namespace?: string | undefined; readonly name?: string | undefined }
  readonly type?: string | undefined
  readonly data?: Readonly<Record<string, string>> | undefined
}

/** The Docker configurations of pull secrets. @throws Error for one that cannot be read */
export function configsOfSecrets(secrets: readonly PullSecret[]): KeyringConfig[] {
  return secrets.flatMap(({ metadata, type, data = {} }): KeyringConfig[] => {
    const { uid = '', namespace = '', name = '' } = metadata
    const source = { secret: { uid, namespace, name } }
    const modern = type === 'kubernetes.io/dockerconfigjson' ? data['.dockerconfigjson'] : undefined
    const legacy = type === 'kubernetes.io/dockercfg' ? data['.dockercfg'] : undefined
    try {
      if (modern) return [{ config: entriesOf((parse(modern) as { auths?: unknown }).auths ?? {}), source }]
      return legacy ? [{ config: entriesOf(parse(legacy)), source }] : []
    } catch (error) {
      // The content stays out of the message: it is a secret.
      throw new Error(`pull secret ${namespace}/${name}: ${error instanceof SyntaxError ? 'its Docker configuration is not JSON' : (error as Error).message}`)
    }
  })
}

const parse = (base64: string): unknown => JSON.parse(Buffer.from(base64, 'base64').toString())

function entriesOf(auths: unknown): DockerConfig {
  if (typeof auths !== 'object' || auths === null) throw new Error('its Docker configuration is not an object')
  return Object.fromEntries(
    Object.entries(auths as Record<string, { username?: string; password?: string; auth?: string }>).map(([location, entry]) => {
      if (!entry.auth) return [location, { username: entry.username ?? '', password: entry.password ?? '' }]
      const decoded = Buffer.from(entry.auth, 'base64').toString()
      const colon = decoded.indexOf(':')
      if (colon < 0) throw new Error('unable to parse auth field, must be formatted as base64(username:password)')
      return [location, { username: decoded.slice(0, colon), password: decoded.slice(colon + 1) }]
    }),
  )
}
