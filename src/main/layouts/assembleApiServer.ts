/** Puts an API server together from its options (L5), the same for a process of its own and for a local cluster. */
import os from 'node:os'
import { type ApiServer, type ApiServerConfig, type ApiServerDeps, createApiServer } from '#apiserver/apiServer'
import type { Reach } from '#apiserver/backends/reach'
import { createBuiltInRegistry } from '#apiserver/builtInRegistry'
import type { ObjectReader } from '#apiserver/core/objectReader'
import type { Encryption } from '#apiserver/encryption/encryption'
import { changesPage } from '#apiserver/endpoints/changes'
import { meteredStore } from '#apiserver/registry/storeMetrics'
import type { ExternalSigner } from '#apiserver/tokens/externalSigner'
import type { Logger } from '#base/log'
import type { Store } from '#store/store'
import { configFromOptions, depsFromOptions, registryConfigOf, trustFromOptions } from '../apiserver/fromOptions.ts'
import { isLocal } from '../apiserver/openStore.ts'
import type { ServerOptions } from '../apiserver/options/index.ts'
import { scrapeComponent } from '../componentMetrics.ts'
import { live } from '../pki/livePki.ts'
import type { Pki } from '../pki/pki.ts'
import { describeLazily } from './descriptions.ts'
import type { ProcessTools } from './processTools.ts'

export interface ApiServerParts {
  readonly tools: ProcessTools
  readonly log: Logger
  readonly pki: Pki
  readonly store: Store
  readonly encryption: Encryption | undefined
  readonly externalSigner: ExternalSigner | undefined
}

/** Differences between the layouts. */
export interface ApiServerPlace {
  readonly serviceCidr: string
  /** Names this server among all that share its store. Default: the host's name. */
  readonly hostName?: string | undefined
  /** How connections to addresses of the cluster are made; absent: by this process. */
  readonly reach?: ((reader: ObjectReader) => Reach) | undefined
  /** Host and port in URLs that the server gives out; undefined: unknown. */
  readonly externalAddress: string | undefined
  /** In addition to those of the options. */
  readonly postStartHooks: NonNullable<ApiServerDeps['postStartHooks']>
  /** In addition to those of the options. */
  readonly pages?: ApiServerDeps['pages']
  /** The components that `kubectl get componentstatuses` probes. */
  readonly components: NonNullable<ApiServerDeps['components']>
  readonly config: Pick<ApiServerConfig, 'advertised' | 'proxyClient' | 'kubelet'>
}

export function assembleApiServer(options: ServerOptions, parts: ApiServerParts, place: ApiServerPlace): ApiServer {
  const { tools, log, pki, encryption, externalSigner } = parts
  const { serviceCidr, hostName = os.hostname(), externalAddress, postStartHooks, pages = [], components, config } = place
  const { clock, random, metrics, tracer } = tools
  const store = meteredStore(parts.store, { clock, metrics, tracer })
  const registry = createBuiltInRegistry({
    store,
    clock,
    log: tools.log.with('registry'),
    metrics,
    random,
    ...registryConfigOf(options, serviceCidr),
    transformers: encryption?.transformers,
  })
  const { reader } = registry
  const reach = place.reach?.(reader)
  const common = { clock, random, log, metrics, tracer }
  const { serviceAccountKey } = pki
  const waitUntilCurrent = () => registry.cacher.waitUntilCurrent()
  const current = { reader, waitUntilCurrent }
  const deps = depsFromOptions(options, { ...common, ...current, reach, serviceAccountKey, externalSigner, externalAddress, frontProxyNames })
  return createApiServer(
    {
      ...common,
      store,
      registry,
      ...deps,
      components,
      healthChecks: encryption?.healthChecks,
      postStartHooks: [...(deps.postStartHooks ?? []), ...postStartHooks],
      describe: describeLazily(),
      trace: tools.trace,
      scrape: (accept) => scrapeComponent(metrics, accept),
      pages: [...(deps.pages ?? []), ...pages, ...(isLocal(parts.store) ? [changesPage({ store: parts.store, registry, authorizers: deps.authorizers })] : [])],
    },
    {
      ...configFromOptions(options),
      ...config,
      hostName,
      reach,
      serviceCidr,
      trust: live(() => trustFromOptions(options, { clientCa: pki.ca.cert, requestHeaderCa: pki.frontProxyCa.cert }, frontProxyNames)),
    },
  )
}

/** Common names of the front proxy's certificates that the PKI issues. */
const frontProxyNames = ['front-proxy-client']
