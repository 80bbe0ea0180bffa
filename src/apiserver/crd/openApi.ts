/** The kinds of a custom resource as OpenAPI shows them (L3). Upstream: apiextensions-apiserver/pkg/controller/openapi/builder. */
import type { ExtraDefinition } from '#api/machinery/openapi/schemas'
import type { Schema } from '#api/schema/schema'
import { listSchemaOf } from '#api/schema/structural'
import { type Definition, type DefinitionVersion, definitionName } from './definitions.ts'

/** Per served version: the kind and its list. */
export function openApiDefinitions(
  definition: Definition,
  versions: readonly { readonly version: DefinitionVersion; readonly schema: Schema }[],
): ExtraDefinition[] {
  const { group } = definition.spec
  const { kind, listKind = `${kind}List` } = definition.status.acceptedNames?.kind ? definition.status.acceptedNames : definition.spec.names
  return versions.flatMap(({ version, schema }) => {
    const name = definitionName(group, version.name, kind)
    const listName = definitionName(group, version.name, listKind)
    return [
      { name, schema, kind: { group, version: version.name, kind } },
      { name: listName, schema: listSchemaOf(listName, schema), kind: { group, version: version.name, kind: listKind } },
    ]
  })
}
