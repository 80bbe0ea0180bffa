/**
 * Keeps the routing table, the backends and the certificates in step with the cluster (L3): handlers only note what has changed, and one loop takes it over in
 * short turns. Requests ask the table that is there.
 */
import type { SecureContext } from 'node:tls'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Ingress } from '#api/gen/types/networking.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { createWakeUp } from '#base/wakeUp'
import { endpointSlices, ingressClasses, ingresses, secrets, services } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createBackendPools, serviceKeyOf } from './backendPools.ts'
import { createPauses, deferred, followChanges, onEach } from './following.ts'
import { isOurs, type OwnClasses, ownClasses } from './model/ingressClass.ts'
import { type ParsedIngress, parseIngress, shortened } from './model/parsedIngress.ts'
import type { BackendRef, Route } from './model/route.ts'
import { RoutingTable } from './model/routingTable.ts'
import type { Backend } from './proxy/backend.ts'
import { createCertificateReader, tlsSecretType } from './proxy/certificates.ts'

export interface ClusterRoutesDeps {
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly log: Logger
}

export interface ClusterRoutes {
  readonly table: RoutingTable
  route(host: string, path: string): Route | undefined
  backendOf(ref: BackendRef): Backend
  /** The certificate for a server name; undefined: there is none that can be used. */
  certificateOf(serverName: string): SecureContext | undefined
  /** Why parts of the Ingress are not served, its certificates included. Certificates that no client has asked for are read now. */
  problemsOf(key: string): Promise<readonly string[]>
  ingress(key: string): Frozen<Ingress> | undefined
  /** Calls back with the keys of Ingresses that have changed, or whose problems may have. @returns a function that ends it */
  onChange(listener: (keys: Iterable<string>) => void): () => void
  /** Resolves when the table holds all that the cluster has at first. */
  readonly ready: Promise<void>
  run(signal: AbortSignal): Promise<void>
}

export function createClusterRoutes({ informers, clock, log }: ClusterRoutesDeps): ClusterRoutes {
  const sources = sourcesOf(informers)
  const pools = createBackendPools(informers, clock)
  const table = new RoutingTable()
  const reader = createCertificateReader()
  const dirty = new Set<string>()
  const changes = createWakeUp()
  const listeners = new Set<(keys: Iterable<string>) => void>()
  let classes: OwnClasses = { names: new Set(), includesDefault: false }
  const { promise: ready, resolve: markReady } = deferred()
  const tell = (keys: Iterable<string>) => {
    for (const listener of listeners) listener(keys)
  }
  const note = (keys: Iterable<string>) => {
    for (const key of keys) dirty.add(key)
    changes.ring()
  }

  async function takeChanges(): Promise<void> {
    const pause = createPauses(clock)
    const found = ownClasses(sources.classes.store.list())
    if (!semanticEqual([...found.names], [...classes.names]) || found.includesDefault !== classes.includesDefault) note(sources.ingresses.store.keys())
    classes = found
    const taken = new Map<string, ParsedIngress | undefined>()
    for (const key of [...dirty]) {
      dirty.delete(key)
      const ingress = sources.ingresses.store.get(key)
      const parsed = ingress && isOurs(ingress, classes) ? parseIngress(ingress) : undefined
      if (parsed || table.get(key)) taken.set(key, parsed)
      await pause()
    }
    const steps = table.update(taken)
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) {
        tell(step.value)
        return
      }
      await pause()
    }
  }

  return {
    table,
    ready,
    route: (host, path) => table.route(host, path),
    backendOf: pools.backendOf,
    certificateOf: (serverName) => {
      const secret = sources.secrets.store.get(table.certificate(serverName.toLowerCase()) ?? '')
      return secret && reader.load(secret).context
    },
    async problemsOf(key) {
      const pause = createPauses(clock)
      const ofSecrets: string[] = []
      for (const name of table.get(key)?.secrets ?? []) {
        const secret = sources.secrets.store.get(name)
        const problem = secret ? reader.load(secret).problem : `there is no Secret of type ${tlsSecretType} with this name`
        if (problem !== undefined) ofSecrets.push(`the default certificate is used instead of that of Secret ${name.split('/')[1]}: ${problem}`)
        await pause()
      }
      return [...table.problems(key), ...shortened(ofSecrets)]
    },
    ingress: (key) => sources.ingresses.store.get(key),
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    run(signal) {
      const stop = follow(sources, { note, refresh: pools.refresh, noteSecret: (key) => tell(table.ingressesOf(key)) })
      const failure = 'Changes of Ingresses could not be taken over'
      return followChanges({ sources, changes, takeChanges, markReady, log, failure, stop }, signal)
    },
  }
}

function sourcesOf(informers: SharedInformerFactory) {
  return {
    ingresses: informers.of(ingresses),
    classes: informers.of(ingressClasses),
    services: informers.of(services),
    slices: informers.of(endpointSlices),
    // Only what an Ingress may use is kept in memory, though the right to read is wider.
    secrets: informers.of(secrets, { fieldSelector: `type=${tlsSecretType}` }),
  }
}

interface Notes {
  /** Ingresses that have changed. */
  note(keys: Iterable<string>): void
  refresh(service: string): void
  noteSecret(key: string): void
}

/** @returns a function that ends it */
function follow({ ingresses: all, classes, services: ofServices, slices, secrets: ofSecrets }: ReturnType<typeof sourcesOf>, notes: Notes): () => void {
  const noteAll = () => notes.note(all.store.keys())
  const registrations = [
    classes.addHandler({ onAdd: noteAll, onUpdate: noteAll, onDelete: noteAll }),
    all.addHandler(onEach((ingress) => notes.note([keyOf(ingress)]))),
    ofServices.addHandler(onEach((service) => notes.refresh(keyOf(service)))),
    slices.addHandler({
      ...onEach<EndpointSlice>((slice) => notes.refresh(serviceKeyOf(slice))),
      onUpdate: (old, now) => {
        notes.refresh(serviceKeyOf(now))
        if (serviceKeyOf(old) !== serviceKeyOf(now)) notes.refresh(serviceKeyOf(old))
      },
    }),
    ofSecrets.addHandler(onEach((secret) => notes.noteSecret(keyOf(secret)))),
  ]
  return () => {
    for (const registration of registrations) registration.remove()
  }
}
