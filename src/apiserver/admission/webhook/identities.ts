/**
 * The server's credentials for each webhook (L3), from a kubeconfig whose users are named after the webhooks' servers.
 * Upstream: apiserver/pkg/util/webhook/authentication.go (v1.36).
 */
import { identityHeaders } from '#client/identityHeaders'
import { type Kubeconfig, type KubeconfigDeps, type ResolvedUser, resolveUser } from '#client/kubeconfig'
import type { WebhookIdentity } from '../../webhooks/webhookClient.ts'

/** The credentials for a server by its host and port, `name.namespace.svc:443` for services. Undefined: none. */
export type IdentityOf = (hostPort: string) => WebhookIdentity | undefined

/** Loads the credentials of all users of the kubeconfig. @throws Error for a user whose credentials cannot be loaded */
export async function webhookIdentities(config: Kubeconfig, deps: KubeconfigDeps): Promise<IdentityOf> {
  const identities = new Map<string, WebhookIdentity>()
  for (const { name, user } of config.users ?? []) identities.set(name, identityOf(name, await resolveUser(user, name, deps)))
  const context = config.contexts?.find(({ name }) => name === config['current-context'])?.context
  return (hostPort) => {
    const name = namesFor(hostPort, context?.user).find((one) => identities.has(one))
    return name === undefined ? undefined : identities.get(name)
  }
}

/** Names of users that match a server, the most specific first. */
export function namesFor(hostPort: string, currentUser: string | undefined): string[] {
  const withoutPort = hostPort.endsWith(':443') ? [hostPort.slice(0, -':443'.length)] : []
  return [...[hostPort, ...withoutPort].flatMap((target) => [target, ...suffixesOf(target)]), '*', ...(currentUser ? [currentUser] : [])]
}

/** `*.b.c` and `*.c` for a.b.c. */
function suffixesOf(target: string): string[] {
  const steps = target.split('.')
  return steps.slice(1).map((_, at) => `*.${steps.slice(at + 1).join('.')}`)
}

/** Host and port of a webhook's URL; the port is always given. */
export function hostPortOf(url: string): string {
  const { hostname, port } = URL.canParse(url) ? new URL(url) : { hostname: '', port: '' }
  return `${hostname}:${port || '443'}`
}

function identityOf(name: string, { cert, key, credentials, bearerToken, basicAuth, impersonate }: ResolvedUser): WebhookIdentity {
  if (bearerToken && basicAuth) throw new Error(`user ${JSON.stringify(name)}: username/password or bearer token may be set, but not both`)
  return async () => {
    const current = await credentials?.get()
    const token = current?.token ?? (typeof bearerToken === 'function' ? await bearerToken() : bearerToken)
    return { cert: current?.cert ?? cert, key: current?.key ?? key, headers: identityHeaders({ token, basicAuth, impersonate }) }
  }
}
