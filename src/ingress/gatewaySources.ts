/** What the Gateways' routes are made of (L3): the objects of the cluster, indexed by what they name, and which Gateways and routes a change of one concerns. */
import type { ConfigMap, Secret, Service } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { namespaces, secrets, services } from '#client/builtIn'
import { namespaceIndex } from '#client/cache/indexer'
import type { ReflectorDeps } from '#client/cache/reflector'
import type { SharedInformer } from '#client/cache/sharedInformer'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import { createCaBundles } from './caBundles.ts'
import { onEach, syncedIfServed } from './following.ts'
import { backendTlsPolicies, gatewayClasses, gateways, listenerSets, referenceGrants, routeResources } from './gatewayResources.ts'
import { parentKeyOf } from './model/gateway/attachments.ts'
import { serviceOf } from './model/gateway/backends.ts'
import { configMapsOf, targetServicesOf } from './model/gateway/backendTls.ts'
import type { BackendTlsPolicy, Filter, Gateway, HttpRoute, HttpRule, ListenerSet } from './model/gateway/kinds.ts'
import { gatewayOfSet } from './model/gateway/listenerSets.ts'
import { type AnyRoute, type RouteKindName, readRoute } from './model/gateway/routeKinds.ts'
import type { ClusterView } from './model/gateway/view.ts'
import { tlsSecretType } from './proxy/certificates.ts'

/** The keys of what has another verdict, perhaps. */
export interface GatewayChanges {
  readonly gateways: Iterable<string>
  /** `KIND/namespace/name`. */
  readonly routes: Iterable<string>
  /** BackendTLSPolicies. */
  readonly policies: Iterable<string>
}

export type GatewaySources = ReturnType<typeof sourcesOf>

export interface SourcesDeps extends ReflectorDeps {
  /** Asked which kinds are served: a user's definitions may be of a release without some. */
  readonly client: Pick<Client, 'of'>
  readonly informers: SharedInformerFactory
}

/** The sources of Gateways and routes. Their informers get the indexes that are asked for here, so it is called once for a factory. */
export function sourcesOf(deps: SourcesDeps) {
  const { informers } = deps
  const ofGateways = informers.of(gateways)
  ofGateways.addIndexers({ secret: secretsOf, secretNamespace: (gateway) => [...new Set(secretsOf(gateway).map(namespaceOf))] })
  return {
    classes: informers.of(gatewayClasses),
    gateways: ofGateways,
    sets: setSource(deps),
    routes: routeSource(deps),
    policies: policySource(deps),
    grants: informers.of(referenceGrants),
    namespaces: informers.of(namespaces),
    services: informers.of(services),
    secrets: informers.of(secrets, { fieldSelector: `type=${tlsSecretType}` }),
  }
}

function setSource({ informers, client, clock }: SourcesDeps) {
  const informer = informers.of(listenerSets)
  informer.addIndexers({
    gateway: (set) => [gatewayOfSet(set) ?? []].flat(),
    secret: secretsOf,
    secretNamespace: (set) => [...new Set(secretsOf(set).map(namespaceOf))],
  })
  return {
    store: informer.store,
    /** The Gateways of the sets that are found by an index. */
    gatewaysOf: (index: string, value: string) => informer.store.byIndex(index, value).flatMap((set) => gatewayOfSet(set) ?? []),
    /** @param take gets the Gateways of a set that comes, changes or goes */
    onChange: (take: (gateways: readonly string[]) => void) => {
      const takeAll = (...sets: readonly Frozen<ListenerSet>[]) => take(sets.flatMap((set) => gatewayOfSet(set) ?? []))
      return informer.addHandler({ onAdd: (set) => takeAll(set), onUpdate: takeAll, onDelete: (set) => takeAll(set) })
    },
    synced: (signal: AbortSignal) => syncedIfServed(informer, client, clock, signal),
  }
}

const routeIndexers = {
  /** `KIND namespace/name`. */
  parent: parentsOf,
  service: servicesOf,
  serviceNamespace: (route: Frozen<AnyRoute>) => [...new Set(servicesOf(route).map(namespaceOf))],
}

/** The routes of all kinds as one source. Keys begin with the kind. */
function routeSource({ informers, client, clock }: SourcesDeps) {
  const ofKinds = Object.entries(routeResources).map(([kind, resource]) => [kind as RouteKindName, informers.of(resource)] as const)
  for (const [, informer] of ofKinds) informer.addIndexers(routeIndexers)
  const each = <T>(take: (kind: RouteKindName, informer: SharedInformer<AnyRoute>) => T[]) => ofKinds.flatMap(([kind, informer]) => take(kind, informer))
  return {
    get: (key: string): Frozen<HttpRoute> | undefined => {
      const kind = kindOf(key)
      const route = ofKinds.find(([one]) => one === kind)?.[1].store.get(key.slice(kind.length + 1))
      return route && readRoute(kind, route)
    },
    keys: () => each((kind, { store }) => [...store.keys()].map((key) => `${kind}/${key}`)),
    byIndex: (index: string, value: string) => each((kind, { store }) => store.byIndex(index, value).map((route) => `${kind}/${keyOf(route)}`)),
    onChange: (take: (key: string) => void) => each((kind, informer) => [informer.addHandler(onEach((route) => take(`${kind}/${keyOf(route)}`)))]),
    synced: async (signal: AbortSignal) => void (await Promise.all(ofKinds.map(([, informer]) => syncedIfServed(informer, client, clock, signal)))),
  }
}

/** The BackendTLSPolicies with the ConfigMaps that they name. */
function policySource(deps: SourcesDeps) {
  const informer = deps.informers.of(backendTlsPolicies)
  informer.addIndexers({ service: targetServicesOf, configMap: configMapsOf })
  const bundles = createCaBundles(deps.client, deps)
  return {
    bundles,
    store: informer.store,
    /** @param take gets the Services of policies that come, change or go, and the keys of these policies */
    onChange: (take: (services: readonly string[], policies: readonly string[]) => void) => {
      const takeOne = (policy: Frozen<BackendTlsPolicy>) => {
        if (configMapsOf(policy).length > 0) bundles.want()
        take(targetServicesOf(policy), [keyOf(policy)])
      }
      bundles.onChange((key) => {
        const naming = informer.store.byIndex('configMap', key)
        if (naming.length > 0) take(naming.flatMap(targetServicesOf), naming.map(keyOf))
      })
      const onUpdate = (old: Frozen<BackendTlsPolicy>, now: Frozen<BackendTlsPolicy>) => {
        // Its own status changes nothing.
        if (semanticEqual(old.spec, now.spec)) return
        take(targetServicesOf(old), [])
        takeOne(now)
      }
      return informer.addHandler({ onAdd: takeOne, onUpdate, onDelete: takeOne })
    },
    synced: async (signal: AbortSignal) => {
      await syncedIfServed(informer, deps.client, deps.clock, signal)
      if (informer.store.list().some((policy) => configMapsOf(policy).length > 0)) bundles.want()
      await bundles.synced(signal)
    },
  }
}

/** The kind of a route, with which its key begins. */
export function kindOf(key: string): RouteKindName {
  return key.slice(0, key.indexOf('/')) as RouteKindName
}

const namespaceOf = (key: string) => key.split('/')[0] ?? ''

export function secretsOf({ metadata, spec }: Frozen<Gateway | ListenerSet>): string[] {
  // A listener without the form of one is refused where it is compiled.
  const refs = (spec.listeners ?? []).flatMap((listener) => listener?.tls?.certificateRefs ?? [])
  return [...new Set(refs.map((ref) => `${ref?.namespace ?? metadata.namespace}/${ref?.name}`))]
}

function parentsOf({ metadata, spec }: Frozen<AnyRoute>): string[] {
  const keys = (spec.parentRefs ?? []).flatMap((ref) => parentKeyOf(ref, metadata.namespace ?? '') ?? [])
  return [...new Set(keys.map(({ kind, key }) => `${kind} ${key}`))]
}

export function servicesOf({ metadata, spec }: Frozen<AnyRoute>): string[] {
  const mirrors = (filters: Frozen<Filter>[]) => filters.flatMap(({ requestMirror }) => requestMirror?.backendRef ?? [])
  const rules: readonly Frozen<Pick<HttpRule, 'backendRefs' | 'filters'>>[] = spec.rules ?? []
  const refs = rules.flatMap(({ backendRefs = [], filters = [] }) => [
    ...backendRefs,
    ...mirrors([...filters, ...backendRefs.flatMap((ref) => ref.filters ?? [])]),
  ])
  return [...new Set(refs.map((ref) => serviceOf(ref, metadata.namespace ?? '')))]
}

/** @param authoritiesOf reads the ConfigMap of a policy */
export function viewOf(
  { grants, namespaces: spaces, services: all, secrets: pairs, policies }: GatewaySources,
  problemOf: (secret: Frozen<Secret>) => string | undefined,
  authoritiesOf: (configMap: Frozen<ConfigMap>) => ReturnType<ClusterView['authoritiesIn']>,
): ClusterView {
  return {
    service: (key) => all.store.get(key),
    problemOfSecret: (key) => {
      const secret = pairs.store.get(key)
      return secret ? problemOf(secret) : `there is no Secret of type ${tlsSecretType} with this name`
    },
    namespaceLabels: (namespace) => spaces.store.get(namespace)?.metadata.labels ?? {},
    grantsIn: (namespace) => grants.store.byIndex(namespaceIndex, namespace),
    policiesFor: (service) => policies.store.byIndex('service', service),
    authoritiesIn: (key) => {
      const configMap = policies.bundles.get(key)
      return configMap ? authoritiesOf(configMap) : { problem: 'there is no ConfigMap of this name' }
    },
  }
}

/** @returns a function that ends it */
export function follow(sources: GatewaySources, note: (what: Partial<GatewayChanges>) => void): () => void {
  const { classes, gateways: all, sets, routes, policies, grants, namespaces: spaces, services: ofServices, secrets: pairs } = sources
  const routesOf = routes.byIndex
  const noteService = (service: Frozen<Service>) =>
    note({ routes: routesOf('service', keyOf(service)), policies: policies.store.byIndex('service', keyOf(service)).map(keyOf) })
  const noteNamespace = (namespace: string) => note({ gateways: sets.gatewaysOf(namespaceIndex, namespace), routes: routesOf(namespaceIndex, namespace) })
  const registrations = [
    classes.addHandler(onEach(() => note({ gateways: all.store.keys() }))),
    all.addHandler(onEach((gateway) => note({ gateways: [keyOf(gateway)] }))),
    sets.onChange((gateways) => note({ gateways })),
    ...routes.onChange((key) => note({ routes: [key] })),
    policies.onChange((targets, changed) => {
      // An older policy, or none any more, decides about the others of the same Services.
      const related = targets.flatMap((service) => policies.store.byIndex('service', service).map(keyOf))
      note({ routes: targets.flatMap((service) => routesOf('service', service)), policies: [...changed, ...related] })
    }),
    grants.addHandler(
      onEach(({ metadata: { namespace = '' } }) =>
        note({
          gateways: [...all.store.byIndex('secretNamespace', namespace).map(keyOf), ...sets.gatewaysOf('secretNamespace', namespace)],
          routes: routesOf('serviceNamespace', namespace),
        }),
      ),
    ),
    spaces.addHandler({
      onAdd: ({ metadata }) => noteNamespace(metadata.name ?? ''),
      onUpdate: (old, { metadata }) => {
        if (!semanticEqual(old.metadata.labels, metadata.labels)) noteNamespace(metadata.name ?? '')
      },
    }),
    ofServices.addHandler({
      onAdd: noteService,
      onUpdate: (old, service) => {
        if (!semanticEqual(old.spec, service.spec)) noteService(service)
      },
      onDelete: noteService,
    }),
    pairs.addHandler(
      onEach((secret) => note({ gateways: [...all.store.byIndex('secret', keyOf(secret)).map(keyOf), ...sets.gatewaysOf('secret', keyOf(secret))] })),
    ),
  ]
  return () => {
    for (const registration of registrations) registration.remove()
  }
}
