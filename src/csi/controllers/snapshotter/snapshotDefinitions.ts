/**
 * The CustomResourceDefinitions of snapshot.storage.k8s.io and groupsnapshot.storage.k8s.io (L3), made of tables of their fields. They are created where they are
 * missing; others stay as they are. Upstream: external-snapshotter, client/config/crd (v8).
 */
import type { CustomResourceDefinition } from '#api/gen/types/apiextensions.v1'
import { isStatus } from '#api/machinery/status'
import { customResourceDefinitions } from '#client/builtIn'
import type { Client, NewObject } from '#client/client'
import { type DefinitionFacts, object, text } from './definitionFacts.ts'
import { groupFacts } from './groupFacts.ts'
import { groupSnapshotGroup } from './groupTypes.ts'
import { snapshotFacts } from './snapshotFacts.ts'
import { snapshotGroup } from './snapshotTypes.ts'

export const snapshotDefinitions = [
  ...snapshotFacts.map((facts) => definitionOf(snapshotGroup, facts)),
  ...groupFacts.map((facts) => definitionOf(groupSnapshotGroup, facts)),
]

function definitionOf(group: string, { kind, shortNames, scope, approval, fields, required, columns }: DefinitionFacts): NewObject<CustomResourceDefinition> {
  const singular = kind.toLowerCase()
  const plural = singular.endsWith('s') ? `${singular}es` : `${singular}s`
  const version = {
    ...{ name: 'v1', served: true, storage: true },
    schema: { openAPIV3Schema: object({ apiVersion: text, kind: text, metadata: { type: 'object' }, ...fields }, required) },
    subresources: Object.hasOwn(fields, 'status') ? { status: {} } : {},
    additionalPrinterColumns: columns.map(([name, jsonPath, type = 'string']) => ({ name, jsonPath, type })),
  }
  const approved = `https://github.com/kubernetes-csi/external-snapshotter/pull/${approval}`
  return {
    metadata: { name: `${plural}.${group}`, annotations: { 'api-approved.kubernetes.io': approved } },
    spec: { group, names: { kind, listKind: `${kind}List`, plural, singular, shortNames: [...shortNames] }, scope, versions: [version] },
  } as unknown as NewObject<CustomResourceDefinition>
}

/** @param fieldManager who owns them */
export async function createMissingDefinitions(client: Client, signal: AbortSignal, fieldManager?: string): Promise<void> {
  for (const definition of snapshotDefinitions) {
    try {
      await client.of(customResourceDefinitions).create(definition, { signal, fieldManager })
    } catch (error) {
      if (!isStatus(error, 'AlreadyExists')) throw error
    }
  }
}
