/** PodTemplate (L1). Upstream: pkg/registry/core/podtemplate (v1.36). */
import type { PodTemplate } from '#api/gen/types/core.v1'
import { labelsText, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { setPodTemplateDefaults } from './pod/defaults.ts'
import { dropDisabledTemplateFields } from './pod/disabledFields.ts'
import { validatePodTemplateSpec } from './pod/validatePodSpec.ts'
import { podTemplateWarnings } from './pod/warnings.ts'

export const podTemplate = defineKind<PodTemplate>({
  group: '',
  kind: 'PodTemplate',
  columns: [
    nameColumn,
    text('Containers', (obj) => (obj.template?.spec?.containers ?? []).map((container) => container.name).join(',')),
    text('Images', (obj) => (obj.template?.spec?.containers ?? []).map((container) => container.image ?? '').join(',')),
    text('Pod Labels', (obj) => labelsText(obj.template?.metadata?.labels)),
  ],
  defaults: (obj) => setPodTemplateDefaults(obj.template),
  prepareForCreate: ({ obj, context }) => dropDisabledTemplateFields(obj.template, context),
  prepareForUpdate: ({ obj, old, context }) => dropDisabledTemplateFields(obj.template, context, old.template),
  validate: ({ obj, path }) => validatePodTemplateSpec(obj.template, path.child('template')),
  validateUpdate: ({ obj, path }) => validatePodTemplateSpec(obj.template, path.child('template')),
  warnings: ({ obj, path }) => podTemplateWarnings(obj.template, path.child('template')),
})
