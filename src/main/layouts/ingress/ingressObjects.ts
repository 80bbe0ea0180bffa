/**
 * What the ingress has in the API of a local cluster (L5): its class, the Service that clients reach it by, and its rights. Rights are brought back at each
 * start; the class and the Service belong to the user once they are made. All of it is removed when the ingress is turned off.
 */
import type { PolicyRule, RoleBinding } from '#api/gen/types/rbac.v1'
import { isStatus } from '#api/machinery/status'
import { ownValue } from '#base/bareMap'
import type { Clock } from '#base/clock'
import { clusterRoleBindings, clusterRoles, ingressClasses, ingresses, namespaces, roleBindings, roles, services } from '#client/builtIn'
import type { Client } from '#client/client'
import { unlessGone } from '#client/unlessGone'
import { controllerName, isOurs, ownClasses } from '#ingress/model/ingressClass'
import { ingressPlace } from '#ingress/place'
import { applyRights, type ClusterRights, fieldManager } from '../clusterRights.ts'
import { ensureGatewayApi, removeGatewayClasses } from './gatewayApi.ts'
import { ingressPorts, ingressUser } from './ingressConfig.ts'

const className = 'skiff'
const defaultAnnotation = 'ingressclass.kubernetes.io/is-default-class'
const { namespace, name } = ingressPlace

export const ingressRights: ClusterRights = {
  name: 'skiff:ingress',
  rules: [
    { apiGroups: ['networking.k8s.io'], resources: ['ingresses', 'ingressclasses'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['networking.k8s.io'], resources: ['ingresses/status'], verbs: ['patch'] },
    {
      apiGroups: ['gateway.networking.k8s.io'],
      resources: ['gatewayclasses', 'gateways', 'listenersets', 'httproutes', 'grpcroutes', 'tlsroutes', 'backendtlspolicies', 'referencegrants'],
      verbs: ['get', 'list', 'watch'],
    },
    {
      apiGroups: ['gateway.networking.k8s.io'],
      resources: [
        'gatewayclasses/status',
        'gateways/status',
        'listenersets/status',
        'httproutes/status',
        'grpcroutes/status',
        'tlsroutes/status',
        'backendtlspolicies/status',
      ],
      verbs: ['patch'],
    },
    { apiGroups: [''], resources: ['services', 'namespaces'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] },
    // Certificates. Rules cannot say "those that Ingresses name": docs/security.md.
    { apiGroups: [''], resources: ['secrets'], verbs: ['list', 'watch'] },
    // The authorities of backends: those that BackendTLSPolicies name.
    { apiGroups: [''], resources: ['configmaps'], verbs: ['list', 'watch'] },
    { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
  ],
  subject: { user: ingressUser },
}

/** In its own namespace only. */
const ownRules: PolicyRule[] = [
  // One for each Gateway.
  { apiGroups: [''], resources: ['services'], verbs: ['create', 'patch', 'delete'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['create', 'patch'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] },
]

export async function ensureIngressObjects(client: Client, clock: Clock, signal: AbortSignal): Promise<void> {
  const options = { fieldManager, force: true, signal }
  const space = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }
  await client.of(namespaces).patch({ name: namespace }, 'apply', space, options)
  await applyRights(client, ingressRights, signal)
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name, namespace }, rules: ownRules }
  await client.of(roles).patch(ingressPlace, 'apply', role, options)
  const apiGroup = 'rbac.authorization.k8s.io'
  const binding: RoleBinding = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name, namespace },
    roleRef: { apiGroup, kind: 'Role', name },
    subjects: [{ kind: 'User', name: ingressUser, apiGroup }],
  }
  await client.of(roleBindings).patch(ingressPlace, 'apply', binding, options)
  await unlessThere(() => createService(client, signal))
  await unlessThere(() => createClass(client, signal))
  await ensureGatewayApi(client, clock, signal)
}

/** No selector: the nodes' ingresses make themselves its endpoints. With the Local policy they see the addresses of clients. */
async function createService(client: Client, signal: AbortSignal): Promise<void> {
  await client.of(services).create(
    {
      metadata: { name, namespace },
      spec: {
        type: 'LoadBalancer',
        externalTrafficPolicy: 'Local',
        ports: [
          { name: 'http', protocol: 'TCP', port: 80, targetPort: ingressPorts.http },
          { name: 'https', protocol: 'TCP', port: 443, targetPort: ingressPorts.https },
        ],
      },
    },
    { fieldManager, signal },
  )
}

/** The default class, unless the cluster has one. */
async function createClass(client: Client, signal: AbortSignal): Promise<void> {
  const { items } = await client.of(ingressClasses).list({ signal })
  const hasDefault = items.some(({ metadata }) => ownValue(metadata.annotations, defaultAnnotation) === 'true')
  const annotations = hasDefault ? {} : { [defaultAnnotation]: 'true' }
  await client.of(ingressClasses).create({ metadata: { name: className, annotations }, spec: { controller: controllerName } }, { fieldManager, signal })
}

async function unlessThere(create: () => Promise<void>): Promise<void> {
  try {
    await create()
  } catch (error) {
    if (!isStatus(error, 'AlreadyExists')) throw error
  }
}

export async function removeIngressObjects(client: Client, signal: AbortSignal): Promise<void> {
  await removeGatewayClasses(client, signal)
  const classes = (await client.of(ingressClasses).list({ signal })).items.filter(({ spec }) => spec.controller === controllerName)
  if (classes.length > 0) await clearAddresses(client, ownClasses(classes), signal)
  for (const { metadata } of classes) await unlessGone(() => client.of(ingressClasses).delete({ name: metadata.name ?? '' }, { signal }))
  await unlessGone(() => client.of(namespaces).delete({ name: namespace }, { signal }))
  await unlessGone(() => client.of(clusterRoleBindings).delete({ name: ingressRights.name }, { signal }))
  await unlessGone(() => client.of(clusterRoles).delete({ name: ingressRights.name }, { signal }))
}

/** Nothing answers at the addresses any more. */
async function clearAddresses(client: Client, classes: ReturnType<typeof ownClasses>, signal: AbortSignal): Promise<void> {
  for (const ingress of (await client.of(ingresses).list({ signal })).items) {
    if (!isOurs(ingress, classes) || !ingress.status?.loadBalancer?.ingress) continue
    const ref = { namespace: ingress.metadata.namespace, name: ingress.metadata.name ?? '' }
    await unlessGone(async () => void (await client.of(ingresses).patch(ref, 'merge', { status: { loadBalancer: null } }, { subresource: 'status', signal })))
  }
}
