/** Advice about requests that are wrong in themselves, and about failures of the server (L3). */
import type { AdviceRule } from './adviceRule.ts'
import { objectText } from './adviceRule.ts'

const shownCauses = 2

export const requestAdvice: readonly AdviceRule[] = [
  {
    code: 422,
    message: /.*/s,
    lines: (_, { causes = [], message = '' }) => {
      if (causes.length === 0) return [message]
      const shown = causes.slice(0, shownCauses).map((cause) => `${cause.field}: ${cause.message}`)
      const isImmutable = causes.some((cause) => /immutable|updates to .* are forbidden|may not change fields/.test(cause.message))
      if (isImmutable) return [...shown, 'such fields cannot change: delete the object and create it again, or leave them as they are']
      return causes.length > shownCauses
        ? [...shown, `and ${causes.length - shownCauses} more fields, which the message names`]
        : [...shown, 'correct these fields: kubectl explain describes them']
    },
  },
  {
    code: 400,
    message: /strict decoding error: (.+)$/s,
    lines: ([, why]) => [
      `the object has fields that its kind does not know: ${why}`,
      'correct or remove them, or send fieldValidation=Warn: kubectl create --validate=warn',
    ],
  },
  {
    code: 400,
    message: /does not match the (?:expected API version|API version)|the API version in the data|does not match the expected/,
    lines: (_, { message = '', uri }) => [message, `the path ${uri.split('?')[0]} serves another apiVersion or kind than the body has`],
  },
  {
    code: 400,
    message: /namespace of the (?:provided )?object/,
    lines: (_, request) => [request.message ?? '', `metadata.namespace must be ${request.object?.namespace || 'empty'}, or absent`],
  },
  { code: 400, message: /.*/s, lines: (_, { message = '' }) => [`the request is malformed: ${message}`] },
  {
    code: 405,
    message: /.*/s,
    lines: (_, request) => [`${objectText(request)} does not take the verb ${request.verb}`, 'the verbs of each resource: kubectl api-resources -o wide'],
  },
  { code: 406, message: /.*/s, lines: (_, { message = '' }) => ['the server cannot answer in a media type that Accept allows', message] },
  {
    code: 413,
    message: /.*/s,
    lines: () => ['the body is larger than 3 MiB, or the object than the store takes', 'split the object; large data belongs in a volume'],
  },
  { code: 415, message: /.*/s, lines: (_, { message = '' }) => ['the server does not read this Content-Type for this request', message] },
  {
    code: 500,
    message: /space exceeded/,
    lines: () => ['the store is full: only reads and deletions succeed', 'delete objects, and compact and defragment: skiff etcd'],
  },
  {
    code: 503,
    message: /.*/s,
    lines: (_, { message = '' }) => [`a server behind this one does not answer: ${message}`, 'kubectl get apiservices shows which'],
  },
  {
    code: 504,
    message: /.*/s,
    lines: () => ['the request took longer than its timeout; it may have been carried out', 'look at the object before you repeat it'],
  },
  { code: 500, message: /.+/s, lines: (_, { message = '', id }) => [message, `the server's log has the cause: skiff logs, and search for ${id}`] },
]
