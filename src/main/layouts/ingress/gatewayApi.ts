/**
 * The kinds of the Gateway API and the class of this ingress (L5). Definitions that a user has installed, perhaps of a newer release, stay as they are; all
 * definitions stay when the ingress is turned off, because deleting them deletes the users' Gateways and routes.
 */

import { gatewayDefinitions } from '#api/gen/gatewayDefinitions'
import type { CustomResourceDefinition, CustomResourceDefinitionSpec } from '#api/gen/types/apiextensions.v1'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { customResourceDefinitions } from '#client/builtIn'
import type { Client } from '#client/client'
import { hasCondition, poll } from '#client/waitFor'
import { gatewayClasses } from '#ingress/gatewayResources'
import { gatewayControllerName } from '#ingress/model/gateway/kinds'
import { fieldManager } from '../clusterRights.ts'

interface Table {
  readonly schemas: readonly object[]
  readonly definitions: readonly {
    readonly name: string
    readonly annotations: Record<string, string>
    readonly spec: Omit<CustomResourceDefinitionSpec, 'versions'> & { readonly versions: readonly { readonly schema: number; readonly name: string }[] }
  }[]
}

const className = 'skiff'
const askMs = 50

export function gatewayDefinitionObjects(): CustomResourceDefinition[] {
  const { schemas, definitions } = JSON.parse(gatewayDefinitions) as Table
  return definitions.map(({ name, annotations, spec }) => {
    const versions = spec.versions.map((version) => ({ ...version, schema: { openAPIV3Schema: schemas[version.schema] } }))
    const head = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' }
    return { ...head, metadata: { name, annotations }, spec: { ...spec, versions } } as unknown as CustomResourceDefinition
  })
}

/** Resolves when the kinds are served. */
export async function ensureGatewayApi(client: Client, clock: Clock, signal: AbortSignal): Promise<void> {
  const wanted = gatewayDefinitionObjects()
  for (const definition of wanted) await ensureDefinition(client, definition, signal)
  for (const { metadata } of wanted) {
    const ref = { name: metadata.name ?? '' }
    await poll(clock, askMs, async () => hasCondition('Established')(await client.of(customResourceDefinitions).get(ref, { signal })) || undefined, signal)
  }
  try {
    await client.of(gatewayClasses).create({ metadata: { name: className }, spec: { controllerName: gatewayControllerName } }, { fieldManager, signal })
  } catch (error) {
    if (!isStatus(error, 'AlreadyExists')) throw error
  }
}

/** Definitions that an earlier release of Skiff has made are brought up to date. They are large: one that is there is not sent again. */
async function ensureDefinition(client: Client, definition: CustomResourceDefinition, signal: AbortSignal): Promise<void> {
  const definitions = client.of(customResourceDefinitions)
  try {
    const { metadata } = await definitions.get({ name: definition.metadata.name ?? '' }, { signal })
    const isOwn = metadata.managedFields?.some(({ manager }) => manager === fieldManager)
    const bundle = 'gateway.networking.k8s.io/bundle-version'
    if (!isOwn || metadata.annotations?.[bundle] === definition.metadata.annotations?.[bundle]) return
    await definitions.update({ ...definition, metadata: { ...definition.metadata, resourceVersion: metadata.resourceVersion } }, { fieldManager, signal })
  } catch (error) {
    if (!isStatus(error, 'NotFound')) throw error
    await definitions.create(definition, { fieldManager, signal })
  }
}

/** The classes of this ingress: nothing serves them any more. */
export async function removeGatewayClasses(client: Client, signal: AbortSignal): Promise<void> {
  try {
    for (const { metadata, spec } of (await client.of(gatewayClasses).list({ signal })).items) {
      if (spec.controllerName === gatewayControllerName) await client.of(gatewayClasses).delete({ name: metadata.name ?? '' }, { signal })
    }
  } catch (error) {
    if (!isStatus(error, 'NotFound')) throw error
  }
}
