/**
 * The clients of kube-controller-manager (L5). Each has a rate limit of its own, so that a controller with much to do delays no other; a controller
 * may multiply its limit. Upstream: cmd/kube-controller-manager/app CreateControllerContext, createClientBuilders and the controllers'
 * constructors (v1.36).
 */
import type { Client } from '#client/client'
import type { RateLimit } from '#client/rateLimitedTransport'
import type { ClientRateFactors } from '#controllers/framework/controller'
import type { ControllerManagerDeps } from '#controllers/framework/manager'
import type { ClientOptions } from './access.ts'

export interface ControllerClientsOptions {
  /** Start of every user agent, e.g. kube-controller-manager. */
  readonly component: string
  readonly rateLimit: RateLimit
  /** Opens a client with a rate limit of its own. */
  open(userAgent: string, options: ClientOptions): Client
  /** Token of a service account; undefined: all clients use the component's credentials. */
  readonly tokenOf?: ((serviceAccount: string) => () => Promise<string>) | undefined
}

export function controllerClients({
  component,
  rateLimit,
  open,
  tokenOf,
}: ControllerClientsOptions): Pick<ControllerManagerDeps, 'client' | 'informerClient' | 'clientFor'> {
  return {
    client: open(`${component}/tokens-controller`, { rateLimit }),
    informerClient: open(`${component}/shared-informers`, { rateLimit }),
    clientFor: (account, factors) => open(`${component}/${account}`, { rateLimit: multiplied(rateLimit, factors), token: tokenOf?.(account) }),
  }
}

function multiplied({ qps, burst }: RateLimit, { qps: qpsFactor = 1, burst: burstFactor = 1 }: ClientRateFactors = {}): RateLimit {
  return { qps: qps * qpsFactor, burst: burst * burstFactor }
}
