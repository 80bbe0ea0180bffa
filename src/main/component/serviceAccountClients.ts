/**
 * Clients that act as service accounts of kube-system (L5): their tokens are asked for with the component's own credentials and renewed in time;
 * an account that is missing is made. Upstream: controller-manager/pkg/clientbuilder/client_builder_dynamic.go (v1.36).
 */
import type { TokenRequest } from '#api/gen/types/authentication.v1'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { serviceAccounts } from '#client/builtIn'
import type { Client } from '#client/client'

const namespace = 'kube-system'
const expirationSeconds = 3600
/** The part of a token's life after which it is renewed. */
const renewAfter = 0.8

/** Gives a token that is good for a while yet. One look-up serves all who ask meanwhile. */
export function serviceAccountToken(client: Client, clock: Clock, name: string): () => Promise<string> {
  let token = ''
  let renewAtMs = Number.NEGATIVE_INFINITY
  let underWay: Promise<string> | undefined
  const renew = async () => {
    token = await requestToken(client, name)
    renewAtMs = clock.monotonicMs() + expirationSeconds * 1000 * renewAfter
    return token
  }
  return () => {
    if (clock.monotonicMs() < renewAtMs) return Promise.resolve(token)
    underWay ??= renew().finally(() => {
      underWay = undefined
    })
    return underWay
  }
}

async function requestToken(client: Client, name: string): Promise<string> {
  try {
    return await ask(client, name)
  } catch (error) {
    if (!isStatus(error, 'NotFound')) throw error
    await client
      .of(serviceAccounts)
      .create({ metadata: { namespace, name } })
      .catch((refused) => {
        if (!isStatus(refused, 'AlreadyExists')) throw refused
      })
    return ask(client, name)
  }
}

async function ask({ transport }: Client, name: string): Promise<string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: {}, spec: { audiences: [], expirationSeconds } }
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`
  const { status } = (await transport.request({ method: 'POST', path, body })).body as TokenRequest
  if (!status?.token) throw new Error(`service account ${namespace}/${name} got no token`)
  return status.token
}
