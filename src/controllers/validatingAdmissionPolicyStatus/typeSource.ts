/**
 * Where type checking learns about kinds (L3): built-in ones are known, others are asked of discovery and the OpenAPI documents.
 * Upstream: apiserver/pkg/cel/openapi/resolver (v1.36).
 */
import { declareSchema } from '#api/cel/declaration'
import { celTypeOf } from '#api/cel/schemaType'
import { builtInResource } from '#api/discovery/resources'
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { type GroupVersionKind, groupVersion } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { schemaFor } from '#api/schema/builtIn'
import type { Transport } from '#client/transport'
import type { TypeSource } from './typeChecking.ts'

const typeExtension = 'x-kubernetes-group-version-kind'

interface OpenApiDocument {
  readonly components?: { readonly schemas?: Readonly<Record<string, JSONSchemaProps & { readonly [typeExtension]?: readonly GroupVersionKind[] }>> }
}

export function createTypeSource(transport: Transport): TypeSource {
  const read = async (path: string): Promise<unknown> => {
    try {
      return (await transport.request({ method: 'GET', path })).body
    } catch (error) {
      if (isStatus(error, 'NotFound')) return undefined
      throw error
    }
  }
  return {
    async kindOf({ group, version, resource }) {
      const known = builtInResource(group, version, resource)
      if (known) return { group, version, kind: known.kind }
      const list = (await read(`/apis/${group}/${version}`)) as { resources?: readonly { name: string; kind: string }[] } | undefined
      const kind = list?.resources?.find(({ name }) => name === resource)?.kind
      return kind === undefined ? undefined : { group, version, kind }
    },
    async typeOf(kind) {
      const schema = schemaFor(kind.group, kind.version, kind.kind)
      if (schema) return celTypeOf(schema, kind.kind)
      const document = (await read(`/openapi/v3/apis/${groupVersion(kind)}`)) as OpenApiDocument | undefined
      const found = Object.values(document?.components?.schemas ?? {}).find((props) => props[typeExtension]?.some((one) => isSame(one, kind)))
      return found && declareSchema(found, kind.kind, true)?.type
    },
  }
}

function isSame(a: GroupVersionKind, b: GroupVersionKind): boolean {
  return a.group === b.group && a.version === b.version && a.kind === b.kind
}
