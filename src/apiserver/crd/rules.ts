/** The CEL rules of a version, run at every write (L3). */
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import type { Schema } from '#api/schema/schema'
import type { RuleValidation } from './strategy.ts'

export function validationRules(_props: JSONSchemaProps, _schema: Schema): RuleValidation | undefined {
  return undefined
}
