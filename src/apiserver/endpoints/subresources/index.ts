/** The subresources with a kind of their own (L3), one file each. */
import type { TokenIssuer } from '../../core/computedResource.ts'
import type { SubresourceHandlers } from '../router.ts'
import type { EndpointDeps } from '../scope.ts'
import { bindingHandlers } from './binding.ts'
import { evictionHandlers } from './eviction.ts'
import { podStreamHandlers, type StreamDeps } from './podStreams.ts'
import { proxyHandlers } from './proxy.ts'
import { scaleHandlers } from './scale.ts'
import { tokenHandlers } from './token.ts'

export interface SubresourceDeps extends StreamDeps {
  readonly endpoints: EndpointDeps
  readonly tokens: TokenIssuer | undefined
}

export function subresourceHandlers(deps: SubresourceDeps): SubresourceHandlers {
  const streams = podStreamHandlers(deps)
  const proxies = proxyHandlers(deps)
  return {
    '/pods/log': streams.log,
    '/pods/exec': streams.exec,
    '/pods/attach': streams.attach,
    '/pods/portforward': streams.portforward,
    '/pods/proxy': proxies.pods,
    '/nodes/proxy': proxies.nodes,
    '/services/proxy': proxies.services,
    '/pods/binding': bindingHandlers,
    '/pods/eviction': evictionHandlers,
    '/serviceaccounts/token': tokenHandlers(deps.tokens),
    '*/scale': scaleHandlers,
  }
}
