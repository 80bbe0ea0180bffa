/**
 * From the client configuration of a webhook to where it is called (L3): by its URL, or as a service, whose name its certificate must have.
 * Upstream: apiserver/pkg/util/webhook/client.go.
 */
import { posix } from 'node:path'
import type { WebhookClientConfig } from '#api/gen/types/admissionregistration.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Reach } from '../backends/reach.ts'
import type { WebhookTarget } from './webhookClient.ts'

/** Where a service leads. @throws StatusError while it leads nowhere */
export type ResolveService = (namespace: string, name: string, port: number) => { readonly host: string; readonly port: number }

/** Where a webhook listens, by its URL or as a service. */
export function webhookTarget({ url, service, caBundle }: Frozen<WebhookClientConfig>, resolve: ResolveService, reach?: Reach): WebhookTarget {
  const text = caBundle ? Buffer.from(caBundle, 'base64').toString('latin1').trim() : ''
  const common = { reach, ...(text === '' ? {} : { ca: text }) }
  if (!service) return { url: withCleanPath(url ?? ''), ...common }
  const { name, namespace, port = 443, path = '/' } = service
  return {
    url: withCleanPath(`https://${name}.${namespace}.svc:${port}/${path}`),
    address: () => resolve(namespace, name, port),
    ...common,
  }
}

/** Repeated and closing slashes of the path are dropped, as upstream's REST client does; envtest writes `//` into the URLs of webhooks. */
function withCleanPath(url: string): string {
  return url.replace(/^(\w+:\/\/[^/]*)(.*)$/, (_, host: string, path: string) => host + posix.join('/', path).replace(/(.)\/$/, '$1'))
}
