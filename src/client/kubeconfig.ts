/**
 * From a kubeconfig to a connection (L2): which context, which server, which credentials. Finding and merging kubeconfigs is
 * kubeconfigFiles.ts' matter; files that a kubeconfig names are read through `readFile`. Upstream: client-go/tools/clientcmd (v1.36).
 */
import type { Clock } from '#base/clock'
import { certificateFromFiles } from './certificateFiles.ts'
import type { CredentialSource } from './credentials.ts'
import { type ExecConfig, execCredentials, type PluginRunner } from './execCredential.ts'
import type { HttpTransportOptions } from './httpTransport.ts'

export interface Kubeconfig {
  readonly 'current-context'?: string | undefined
  readonly clusters?: readonly { readonly name: string; readonly cluster: KubeconfigCluster }[] | null | undefined
  readonly users?: readonly { readonly name: string; readonly user: KubeconfigUser }[] | null | undefined
  readonly contexts?: readonly { readonly name: string; readonly context: KubeconfigContext }[] | null | undefined
}

export interface KubeconfigCluster {
  readonly server: string
  readonly 'certificate-authority'?: string | undefined
  readonly 'certificate-authority-data'?: string | undefined
  readonly 'insecure-skip-tls-verify'?: boolean | undefined
  readonly 'tls-server-name'?: string | undefined
  readonly 'proxy-url'?: string | undefined
  readonly 'disable-compression'?: boolean | undefined
  readonly extensions?: readonly { readonly name: string; readonly extension: unknown }[] | null | undefined
}

export interface KubeconfigUser {
  readonly 'client-certificate'?: string | undefined
  readonly 'client-certificate-data'?: string | undefined
  readonly 'client-key'?: string | undefined
  readonly 'client-key-data'?: string | undefined
  readonly token?: string | undefined
  readonly tokenFile?: string | undefined
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly as?: string | undefined
  readonly 'as-uid'?: string | undefined
  readonly 'as-groups'?: readonly string[] | undefined
  readonly 'as-user-extra'?: Readonly<Record<string, readonly string[]>> | undefined
  readonly exec?: ExecConfig | undefined
  readonly 'auth-provider'?: unknown
}

export interface KubeconfigContext {
  readonly cluster: string
  readonly user: string
  readonly namespace?: string | undefined
}

export interface ResolvedKubeconfig {
  readonly transport: HttpTransportOptions
  readonly namespace: string
}

export interface KubeconfigDeps {
  readonly clock: Clock
  readonly readFile: (path: string) => Promise<Buffer>
  readonly plugins?: PluginRunner | undefined
}

/** Tokens in files rotate: read again this often. Upstream: client-go/transport/token_source.go. */
const tokenFileTtlMs = 60_000

/**
 * Follows `context` (default: the current one), with `user` instead of its own where that is named, to what createHttpTransport needs. Relative files are the caller's to resolve in `readFile`.
 * @throws Error that names what is missing, or that the user needs a credential plugin.
 */
export async function resolveKubeconfig(
  config: Kubeconfig,
  deps: KubeconfigDeps,
  options: { readonly context?: string | undefined; readonly user?: string | undefined; readonly userAgent?: string | undefined } = {},
): Promise<ResolvedKubeconfig> {
  const contextName = options.context ?? config['current-context']
  if (!contextName) throw new Error('no context is chosen: current-context is not set')
  const context = config.contexts?.find(({ name }) => name === contextName)?.context
  if (!context) throw new Error(`context "${contextName}" does not exist`)
  const cluster = config.clusters?.find(({ name }) => name === context.cluster)?.cluster
  if (!cluster) throw new Error(`cluster "${context.cluster}" of context "${contextName}" does not exist`)
  const userName = options.user ?? context.user
  const user = config.users?.find(({ name }) => name === userName)?.user ?? (userName === '' ? {} : undefined)
  if (!user) throw new Error(`auth info "${userName}" does not exist`)
  const ca = await material(cluster['certificate-authority-data'], cluster['certificate-authority'], deps)
  const { cert, key, ...identity } = await resolveUser(user, userName, deps, clusterInfo(cluster, ca))
  return {
    namespace: context.namespace || 'default',
    transport: {
      server: cluster.server,
      clock: deps.clock,
      userAgent: options.userAgent,
      tls: {
        ca,
        cert,
        key,
        serverName: cluster['tls-server-name'],
        insecureSkipVerify: cluster['insecure-skip-tls-verify'],
        proxyUrl: cluster['proxy-url'],
      },
      ...identity,
    },
  }
}

const material = async (data: string | undefined, file: string | undefined, { readFile }: KubeconfigDeps) =>
  data ? Buffer.from(data, 'base64') : file ? await readFile(file) : undefined

/** The user of a kubeconfig, as options of a transport. */
export interface ResolvedUser extends Pick<HttpTransportOptions, 'credentials' | 'bearerToken' | 'basicAuth' | 'impersonate'> {
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
}

/** @param cluster the cluster as credential programs get it, where one is known */
export async function resolveUser(user: KubeconfigUser, name: string, deps: KubeconfigDeps, cluster: object = {}): Promise<ResolvedUser> {
  if (user['auth-provider']) throw new Error(`user "${name}" names an auth provider: there are none any more`)
  if (user.exec && !deps.plugins) throw new Error(`user "${name}" needs a credential plugin, which is not supported`)
  // Credentials of another kind take precedence.
  const ownCredentials = user.token || user.tokenFile || user.username || user['client-certificate'] || user['client-certificate-data']
  const cert = await material(user['client-certificate-data'], user['client-certificate'], deps)
  const key = await material(user['client-key-data'], user['client-key'], deps)
  const byPlugin = user.exec && deps.plugins && !ownCredentials ? execCredentials(user.exec, cluster, { clock: deps.clock, plugins: deps.plugins }) : undefined
  return {
    cert,
    key,
    credentials: byPlugin ?? fromFiles(user, cert, key, deps),
    bearerToken: user.tokenFile ? tokenFromFile(user.tokenFile, user.token, deps) : user.token,
    basicAuth: user.username ? { username: user.username, password: user.password ?? '' } : undefined,
    impersonate: user.as ? { user: user.as, uid: user['as-uid'], groups: user['as-groups'], extra: user['as-user-extra'] } : undefined,
  }
}

/** Undefined: not both are in files only. */
function fromFiles(user: KubeconfigUser, cert: Buffer | undefined, key: Buffer | undefined, deps: KubeconfigDeps): CredentialSource | undefined {
  const { 'client-certificate': certFile, 'client-key': keyFile, 'client-certificate-data': certData, 'client-key-data': keyData } = user
  if (!certFile || !keyFile || certData || keyData || !cert || !key) return undefined
  return certificateFromFiles({ cert: certFile, key: keyFile }, { cert: cert.toString(), key: key.toString() }, deps)
}

/** The extension of a cluster whose content is passed to credential programs. */
const execExtension = 'client.authentication.k8s.io/exec'

/** The cluster as credential programs get it. */
function clusterInfo(cluster: KubeconfigCluster, ca: Buffer | undefined): object {
  const config = cluster.extensions?.find(({ name }) => name === execExtension)?.extension
  return {
    server: cluster.server,
    ...(cluster['tls-server-name'] ? { 'tls-server-name': cluster['tls-server-name'] } : {}),
    ...(cluster['insecure-skip-tls-verify'] ? { 'insecure-skip-tls-verify': true } : {}),
    ...(ca ? { 'certificate-authority-data': ca.toString('base64') } : {}),
    ...(cluster['proxy-url'] ? { 'proxy-url': cluster['proxy-url'] } : {}),
    ...(cluster['disable-compression'] ? { 'disable-compression': true } : {}),
    config: config ?? null,
  }
}

/** A bearer token that follows its file; while that cannot be read, the last one holds, at first the kubeconfig's own. */
function tokenFromFile(file: string, ownToken: string | undefined, deps: KubeconfigDeps): () => Promise<string> {
  let token = ownToken
  let readMs = Number.NEGATIVE_INFINITY
  return async () => {
    const nowMs = deps.clock.monotonicMs()
    if (nowMs - readMs < tokenFileTtlMs && token !== undefined) return token
    try {
      token = (await deps.readFile(file)).toString().trim()
      readMs = nowMs
    } catch (error) {
      if (token === undefined) throw error
    }
    return token
  }
}
