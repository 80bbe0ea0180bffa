/** Whether and where the server sends traces (L5). Upstream: apiserver/pkg/server/options/tracing.go (v1.36). */
import { readTracingConfiguration } from '../../tracing/tracingConfiguration.ts'
import { flag, text } from './flags.ts'
import { readNamed, usable } from './namedFiles.ts'
import { optionGroup } from './optionGroup.ts'

export const tracing = optionGroup({
  name: 'Traces',
  flags: {
    'tracing-config-file': text('A TracingConfiguration: where traces are sent, and how many of a million requests begin one'),
    'tracing-mark-objects': flag(
      'Annotate objects with the trace of the request that wrote their spec, so that controllers, scheduler and kubelets continue it',
    ),
  },
  async settings(values, context) {
    const content = await readNamed(values['tracing-config-file'], context)
    if (content === undefined) return undefined
    return { ...usable(() => readTracingConfiguration(content)), marksObjects: values['tracing-mark-objects'] }
  },
})
