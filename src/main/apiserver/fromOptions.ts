/**
 * What kube-apiserver's flags decide about a server, in the shape that createApiServer wants (L5): one place for the local cluster, the component
 * alone, and tests.
 */
import type { ApiServerConfig, ApiServerDeps } from '#apiserver/apiServer'
import { createSecurity, type SecurityDeps } from '#apiserver/security'
import type { ServerOptions } from './options/index.ts'

export type OptionDeps = Pick<ApiServerDeps, 'authenticators' | 'authorizers' | 'admission' | 'tokens' | 'virtualResources' | 'postStartHooks' | 'documents'>

/** @param given what the composition root decides itself: keys, clock, the registry's reader */
export function depsFromOptions(_options: ServerOptions, given: SecurityDeps): OptionDeps {
  return createSecurity(given)
}

export function configFromOptions(options: ServerOptions): ApiServerConfig {
  return { ...options.generic, flags: options.flags }
}
