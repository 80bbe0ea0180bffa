/** Assembles custom resources for the API server (L3): serving, controllers, conversion webhooks. */
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Transport } from '#client/transport'
import { resolveService } from '../aggregation/serviceResolver.ts'
import type { Reach } from '../backends/reach.ts'
import type { Cancellation } from '../core/cancellation.ts'
import type { UserInfo } from '../core/request.ts'
import type { Catalog } from '../registry/catalog.ts'
import type { Registry } from '../registry/registry.ts'
import type { WriterDeps } from '../registry/writer.ts'
import { cleanUp } from './cleanUp.ts'
import { keepDefinitions } from './controller.ts'
import { validationRules } from './rules.ts'
import { CustomResources } from './serving.ts'
import { createWebhookConversion } from './webhookConversion.ts'

export interface CustomResourceDeps {
  readonly registry: Registry
  readonly catalog: Catalog
  readonly writer: WriterDeps
  readonly log: Logger
  readonly metrics: Metrics
  /** How connections to addresses of the cluster are made; absent: by this process. */
  readonly reach?: Reach | undefined
  /** The server's own identity, and its way to itself. */
  readonly user: UserInfo
  transport(): Transport
}

export interface CustomResourceInstallation {
  /** Resolves when all stored definitions are served. Caches must be loaded. */
  serve(signal: AbortSignal): Promise<void>
  /** Resolves when a definition is served that was written before the call, also by another server. */
  catchUp(group: string, resource: string, cancellation: Cancellation | undefined): Promise<void>
  /** Keeps conditions and finishes deletions until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

export function installCustomResources({ registry, catalog, writer, log, metrics, reach, user, transport }: CustomResourceDeps): CustomResourceInstallation {
  const conversion = createWebhookConversion({
    resolve: (namespace, name, port) => resolveService(registry.reader, writer.random, { namespace, name, port }),
    random: writer.random,
    clock: writer.clock,
    reach,
  })
  const served = new CustomResources({
    registry,
    catalog,
    clock: writer.clock,
    log,
    parts: { webhook: conversion, rules: validationRules(writer.clock, metrics) },
  })
  return {
    serve: (signal) => served.follow(signal),
    async catchUp(group, resource, cancellation) {
      await registry.cacher.waitUntilCurrent(cancellation)
      await served.catchUp(`${resource}.${group}`)
    },
    run: (signal) =>
      keepDefinitions(
        {
          reader: registry.reader,
          transport: transport(),
          clock: writer.clock,
          log,
          cleanUp: (definition, aborted) => cleanUp({ served, writer, user }, definition, aborted),
        },
        signal,
      ),
  }
}
