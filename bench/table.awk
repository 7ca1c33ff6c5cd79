# SPDX-License-Identifier: BSD-2-Clause
# The table of the rows that were selected, and below it the cases that no row has, each by its
# first metric. A value is the median over the rounds, with least and greatest; a ratio is the median
# of the ratios of each round. Reads three files, named by the variable "part":
#   rows      text | measured | against, or "-" | rule, or "-"
#   selected  who case size ...
#   samples   round who case size metric value unit

function trim(s)
{
    gsub(/^ +| +$/, "", s)
    return s
}

# Of values[1..n], which it sorts.
function median(values, n,    i, j, v)
{
    for (i = 2; i <= n; i++) {
        v = values[i]
        for (j = i - 1; j >= 1 && values[j] > v; j--)
            values[j + 1] = values[j]
        values[j + 1] = v
    }
    return n % 2 ? values[(n + 1) / 2] : (values[n / 2] + values[n / 2 + 1]) / 2
}

function figure(x)
{
    if (x == 0)
        return "0"
    return sprintf(x >= 100 ? "%.0f" : x >= 10 ? "%.1f" : x >= 1 ? "%.2f" : "%.3f", x)
}

# "MEDIAN (LEAST to GREATEST) UNIT"; the median is left in middle.
function spread(key,    r, n, v)
{
    n = 0
    for (r = 1; r <= rounds; r++)
        if ((key, r) in sample)
            v[++n] = sample[key, r]
    middle = ""
    if (n == 0)
        return "failed"
    middle = median(v, n)
    return figure(middle) " (" figure(v[1]) " to " figure(v[n]) ") " unit[key]
}

function ratio(subject, base,    r, n, v)
{
    n = 0
    for (r = 1; r <= rounds; r++)
        if ((subject, r) in sample && (base, r) in sample && sample[base, r] > 0)
            v[++n] = sample[subject, r] / sample[base, r]
    return n ? median(v, n) : ""
}

# rule: "ratio|value <|<=|>|>= NUMBER", or "-".
function verdict(rule, value, quotient,    word, x)
{
    if (rule == "-")
        return ""
    split(rule, word, " ")
    x = word[1] == "ratio" ? quotient : value
    if (x == "")
        return "failed"
    x += 0
    if (word[2] == "<" && x < word[3] + 0 || word[2] == "<=" && x <= word[3] + 0 ||
        word[2] == ">" && x > word[3] + 0 || word[2] == ">=" && x >= word[3] + 0)
        return "met"
    return "missed"
}

function cell(column, text)
{
    table[height, column] = text
    if (length(text) > width[column])
        width[column] = length(text)
}

function show(columns,    i, c)
{
    for (i = 1; i <= height; i++) {
        for (c = 1; c <= columns; c++)
            printf "| %-" width[c] "s ", table[i, c]
        print "|"
        if (i == 1) {
            for (c = 1; c <= columns; c++) {
                printf "|"
                for (j = 0; j < width[c] + 2; j++)
                    printf "-"
            }
            print "|"
        }
    }
}

function heads(text,    word, n, i)
{
    split("", width)
    height = 1
    n = split(text, word, ",")
    for (i = 1; i <= n; i++)
        cell(i, word[i])
}

function case_of(key)
{
    sub(/\/[^\/]*$/, "", key)
    return key
}

part == "rows" {
    split($0, field, "|")
    label[++n_rows] = trim(field[1])
    subject[n_rows] = trim(field[2])
    base[n_rows] = trim(field[3])
    rule[n_rows] = trim(field[4])
}

part == "selected" {
    selected[$1 "/" $2 "/" $3] = 1
}

part == "samples" {
    key = $2 "/" $3 "/" $4 "/" $5
    if (!(key in unit))
        keys[++n_keys] = key
    sample[key, $1] = $6
    unit[key] = $7
    if ($1 > rounds)
        rounds = $1
}

END {
    heads("what,measured,against,that is,ratio,target,result")
    for (i = 1; i <= n_rows; i++) {
        if (!(case_of(subject[i]) in selected) ||
            base[i] != "-" && !(case_of(base[i]) in selected))
            continue
        told[case_of(subject[i])] = told[case_of(base[i])] = 1
        height++
        quotient = ratio(subject[i], base[i])
        cell(1, label[i])
        if (base[i] != "-") {
            cell(3, spread(base[i]))
            cell(4, case_of(base[i]))
        }
        cell(2, spread(subject[i]))
        cell(5, quotient == "" ? "" : figure(quotient))
        cell(6, rule[i])
        cell(7, verdict(rule[i], middle, quotient))
    }
    if (height > 1) {
        show(7)
        print ""
    }

    heads("other measurements,metric,measured")
    for (i = 1; i <= n_keys; i++) {
        name = case_of(keys[i])
        if (name in told)
            continue
        told[name] = 1
        height++
        cell(1, name)
        cell(2, substr(keys[i], length(name) + 2))
        cell(3, spread(keys[i]))
    }
    if (height > 1)
        show(3)
}
