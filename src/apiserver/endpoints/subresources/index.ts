/** The subresources that are no view of their object (L3), one file each. */
import type { SubresourceHandlers } from '../router.ts'
import type { EndpointDeps } from '../scope.ts'
import type { TokenIssuer } from '../virtualResource.ts'
import { bindingHandlers } from './binding.ts'
import { evictionHandlers } from './eviction.ts'
import { scaleHandlers } from './scale.ts'
import { tokenHandlers } from './token.ts'

export interface SubresourceDeps {
  readonly endpoints: EndpointDeps
  readonly tokens: TokenIssuer | undefined
}

export function subresourceHandlers(deps: SubresourceDeps): SubresourceHandlers {
  return {
    '/pods/binding': bindingHandlers,
    '/pods/eviction': evictionHandlers,
    '/serviceaccounts/token': tokenHandlers(deps.tokens),
    '*/scale': scaleHandlers,
  }
}
