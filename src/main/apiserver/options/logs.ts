/** The flags of a component's log (L5): verbosity and format. Upstream: component-base/logs/api/v1 (v1.36). */
import { duration, flag, text, UsageError, whole } from './flags.ts'
import { optionGroup } from './optionGroup.ts'

export interface LogSettings {
  readonly verbosity: number
  readonly format: 'text' | 'json'
}

const unbuffered = 'Accepted, without effect: every line is written at once, to the standard error'

export const logs = optionGroup({
  name: 'Logs',
  flags: {
    'log-flush-frequency': duration(unbuffered, 5000),
    'log-json-info-buffer-size': text(unbuffered),
    'log-json-split-stream': flag(unbuffered),
    'log-text-info-buffer-size': text(unbuffered),
    'log-text-split-stream': flag(unbuffered),
    'logging-format': text('text or json', 'text'),
    v: whole('How much the log says', 2),
    vmodule: text('Accepted, without effect: --v holds for all'),
  },
  settings(values): LogSettings {
    const format = values['logging-format']
    if (format !== 'text' && format !== 'json') throw new UsageError([`--logging-format "${format}" must be "text" or "json"`])
    return { verbosity: values.v, format }
  },
})
