/**
 * Writes log lines the way klog does (L5), so that existing tools read them: `I1121 03:50:01.123456 4711 name] message key=value`.
 * Lines go to a stream as they come; a JSON form carries the same keys. Upstream: k8s.io/klog v2, component-base/logs.
 */
import type { LogFields, Logger } from '#base/log'
import { printable } from '#base/printable'

export interface TextLogOptions {
  readonly write: (line: string) => void
  readonly verbosity: number
  readonly format?: 'text' | 'json'
  readonly nowMs: () => number
  readonly pid: number
  /** Adds the stack to errors: for programs that are developed with it. Default false. */
  readonly stacks?: boolean | undefined
}

export function createTextLog(options: TextLogOptions, name = '', bound: LogFields = {}): Logger {
  const emit = (severity: 'I' | 'W' | 'E', message: string, fields: LogFields = {}) => {
    const all = { ...bound, ...fields }
    const line = options.format === 'json' ? jsonLine(options, severity, name, message, all) : textLine(options, severity, name, message, all)
    options.write(`${printable(line)}\n`)
  }
  const info: Logger['info'] = (message, fields) => emit('I', message, fields)
  return {
    info,
    warn: (message, fields) => emit('W', message, fields),
    error: (error, message, fields) =>
      emit('E', message, { err: describeError(error), ...(options.stacks && error instanceof Error ? { stack: error.stack } : {}), ...fields }),
    v: (level) => (level <= options.verbosity ? { info } : { info: () => {}, enabled: false }),
    with: (child, fields) => createTextLog(options, name ? `${name}.${child}` : child, { ...bound, ...fields }),
  }
}

/** The error with the chain of its causes, on one line; a cause that the error's own text repeats is left out. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause === undefined) return error.message
  const cause = describeError(error.cause)
  return error.message.includes(cause) ? error.message : `${error.message}: ${cause}`
}

function textLine(options: TextLogOptions, severity: string, name: string, message: string, fields: LogFields): string {
  const iso = new Date(options.nowMs()).toISOString()
  const stamp = `${iso.slice(5, 7)}${iso.slice(8, 10)} ${iso.slice(11, 23)}000`
  const pairs = Object.entries(fields).map(([key, value]) => ` ${key}=${printValue(value)}`)
  return `${severity}${stamp} ${options.pid} ${name || 'skiff'}] ${JSON.stringify(message)}${pairs.join('')}`
}

function jsonLine(options: TextLogOptions, severity: string, name: string, message: string, fields: LogFields): string {
  return `${JSON.stringify({ ts: options.nowMs(), severity, logger: name, msg: message, ...fields })}`
}

function printValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'object' && value !== null && 'name' in value) {
    const ref = value as { namespace?: string; name: string }
    return JSON.stringify(ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name)
  }
  return JSON.stringify(value) ?? 'undefined'
}
