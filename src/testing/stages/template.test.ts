import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileTemplate } from './template.ts'
import { genericFunctions } from './templateFunctions.ts'
import { TemplateError } from './templateSyntax.ts'

const functions = genericFunctions(() => Date.UTC(2026, 0, 1), 0)
const names = new Set(Object.keys(functions))
const object = {
  metadata: { name: 'web', annotations: { 'a/b': 'c' } },
  spec: { containers: [{ name: 'main' }, { name: 'side', policy: 'Always' }], replicas: 3, on: true, empty: [], map: { b: 2, a: 1 } },
}
const fill = (template: string) => compileTemplate(template, names).text(object, functions)

const cases: readonly (readonly [string, string])[] = [
  ['a {{ .metadata.name }} b', 'a web b'],
  ['{{ .absent.deeper }}', '<no value>'],
  ['{{ .metadata.name | Quote }} {{ .spec.replicas | Quote }} {{ .absent | Quote }}', '"web" "3" "null"'],
  ['x  {{- .spec.replicas -}}  y', 'x3y'],
  ['{{/* nothing */}}{{ if .spec.on }}on{{ else }}off{{ end }}', 'on'],
  ['{{ if .spec.empty }}1{{ else if eq .metadata.name "web" }}2{{ else }}3{{ end }}', '2'],
  ['{{ range .spec.containers }}{{ .name }},{{ end }}', 'main,side,'],
  ['{{ range $i, $c := .spec.containers }}{{ $i }}{{ $c.name }}{{ $.metadata.name }} {{ end }}', '0mainweb 1sideweb '],
  ['{{ range $c := .spec.containers }}{{ $c.name }}{{ end }}', 'mainside'],
  ['{{ range $k, $v := .spec.map }}{{ $k }}{{ $v }}{{ end }}', 'a1b2'],
  ['{{ range .spec.empty }}x{{ else }}none{{ end }}', 'none'],
  ['{{ $found := false }}{{ range .spec.containers }}{{ if eq .policy "Always" }}{{ $found = true }}{{ end }}{{ end }}{{ $found }}', 'true'],
  ['{{ with .metadata.annotations }}{{ index . "a/b" }}{{ end }}{{ with .absent }}x{{ else }}y{{ end }}', 'cy'],
  ['{{ $a := or .metadata.absent dict }}{{ or ( index $a "k" ) "default" }}', 'default'],
  ['{{ printf "%s-%d %q" .metadata.name 2 "x" }}', 'web-2 "x"'],
  ['{{ and true .spec.on }} {{ not .absent }} {{ ne 1 2 }} {{ lt 1 2 }} {{ len .spec.containers }}', 'true true true true 2'],
  ['{{ (index .spec.containers 1).name }} {{ `raw "text"` }} {{ default "d" .absent }}', 'side raw "text" d'],
  ['{{ Now }}', '2026-01-01T00:00:00Z'],
  ['{{ list "b" "a" | len }}', '2'],
]

for (const [template, want] of cases) test(`X2 a Stage’s template ${template}`, () => assert.equal(fill(template), want))

test('X2 a Stage’s template is read as YAML, with parts that were indented', () => {
  const template = 'm:\n{{ YAML .spec.map 1 }}\nlist:\n{{ range .spec.containers }}\n- { name: {{ .name }} }\n{{ end }}'
  assert.deepEqual(compileTemplate(template, names).value(object, functions), { m: { a: 1, b: 2 }, list: [{ name: 'main' }, { name: 'side' }] })
})

const refused: readonly (readonly [string, RegExp])[] = [
  ['{{ .a', /not closed/],
  ['{{ if .a }}', /\{\{if \.a\}\}: not ended/],
  ['{{ end }}', /nothing is open/],
  ['{{ explode . }}', /function "explode" is not supported/],
  ['{{ define "x" }}{{ end }}', /define is not supported/],
  ['{{ if $x := .a }}{{ end }}', /declare it before/],
  ['{{ .a .b }}', /only functions take arguments/],
  ['{{ .a | }}', /unexpected nothing/],
  ['{{ (.a }}', /unexpected/],
  ['{{ a & b }}', /unexpected "&"|not supported/],
]
for (const [template, message] of refused)
  test(`X2 a Stage’s template that is not understood is refused when it is read: ${template}`, () =>
    assert.throws(
      () => compileTemplate(template, names),
      (error) => error instanceof TemplateError && message.test(error.message),
    ))

const failing: readonly (readonly [string, RegExp])[] = [
  ['{{ $nope }}', /\$nope is not declared/],
  ['{{ .metadata }}', /use YAML/],
  ['{{ index .absent 0 }}', /of nothing/],
  ['{{ index .spec.containers 5 }}', /out of range, the list has 2/],
  ['{{ .metadata.name.deeper }}', /has no fields/],
  ['{{ printf "%x" 1 }}', /%x is not supported/],
  ['{{ lt 1 "a" }}', /cannot be compared/],
  ['{{ range .metadata.name }}{{ end }}', /neither a list nor a map/],
]
for (const [template, message] of failing)
  test(`X2 an unsupported construct of a Stage’s template is refused: ${template}`, () => assert.throws(() => fill(template), message))

test('X2 a Stage’s template cannot grow without bound', () => {
  const wide = { spec: { items: Array.from({ length: 200 }, () => 'x'.repeat(10)) } }
  const nested = '{{ range .spec.items }}{{ range $.spec.items }}{{ range $.spec.items }}{{ . }}{{ end }}{{ end }}{{ end }}'
  assert.throws(() => compileTemplate(nested, names).text(wide, functions), /more than/)
})
