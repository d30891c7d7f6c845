/* Scores every record that matches a question, from the pages of FTS5 that list its words.

   It is given bytes alone: it links no SQLite, opens nothing and keeps nothing. Every read is checked
   against the end of its page, so a damaged page raises ValueError. See docs/adr. */

#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GROUPS_MAX 64
#define PLACES_MAX 64
#define TERM_MAX 32768
#define BETWEEN_CHECKS 100000
#define NONE UINT32_MAX
#define RUN_BLOCK 8
#define RUN_BLOCKS_MAX (1 << 24)

enum { TITLE = 1, EVERYWHERE = 2, ACTOR = 4, PART = 8, FIRST = 16 };
enum { DONE, DAMAGED, NO_MEMORY, TOO_MUCH, TOO_LATE };

typedef struct { const uint8_t *bytes; size_t size; } Bytes;
typedef struct { uint64_t id; uint32_t first, count; } Row; /* without a place it is deleted */
typedef struct { Row *rows; size_t count, room; } Rows;
typedef struct { uint32_t *at; size_t count, room; } Places;
typedef struct { size_t postings, most, unchecked; double until; } Work;

/* Words of one group in one text: of a short value, or of passage `part` - 1 of a long one. */
typedef struct { uint32_t next, first, part, run; uint16_t count, field; uint8_t group; } Entry;
typedef struct { uint32_t at; uint8_t group; } Place;
typedef struct { size_t first, count; int flags; } Text;

typedef struct {
    size_t groups;
    double idf[GROUPS_MAX], mean, total, saturation, share, longest, near_chars;
    double passage_words, long_words; /* of a passage, and of a value with `long_passages` or more */
    int title_weight, long_passages;
    uint8_t rarest[GROUPS_MAX]; /* the groups that occur, the rarest first */
    size_t occurring, centres;
} Question;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

/* Counts steps, and rows inside the grant: what is outside may not decide how a question is answered. */
static int worked(Work *work, size_t steps, size_t postings)
{
    work->unchecked += steps;
    work->postings += postings;
    if (work->postings > work->most) return TOO_MUCH;
    if (work->unchecked < BETWEEN_CHECKS) return DONE;
    work->unchecked = 0;
    return now() > work->until ? TOO_LATE : DONE;
}

static int grow(void **array, size_t *room, size_t count, size_t size)
{
    if (count <= *room) return 1;
    size_t wanted = count + *room + 256;
    void *moved = realloc(*array, wanted * size);
    if (!moved) return 0;
    *array = moved;
    *room = wanted;
    return 1;
}

/* Reading pages */

static int varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    uint64_t read = 0;
    for (int n = 0; n < 9 && *at < end; n++) {
        uint8_t byte = *(*at)++;
        if (n == 8) { *value = read << 8 | byte; return 1; }
        read = read << 7 | (byte & 127);
        if (byte < 128) { *value = read; return 1; }
    }
    return 0;
}

/* Where a doclist is read: `end` is that of its part of the page, `last` whether it goes no further. */
typedef struct { const Bytes *pages; size_t count, page; const uint8_t *at, *end; int last; } Reader;

static int open_page(const Bytes *page, const uint8_t **footer)
{
    if (page->size < 4) return 0;
    size_t leaf = (size_t)page->bytes[2] << 8 | page->bytes[3];
    if (leaf < 4 || leaf > page->size) return 0;
    *footer = page->bytes + leaf;
    return 1;
}

/* Moves to the next page: 1, or 0 if there is none, or -1 if it is damaged. */
static int next_page(Reader *reader)
{
    const uint8_t *footer;
    uint64_t term;
    if (reader->last || reader->page + 1 >= reader->count) return 0;
    const Bytes *page = &reader->pages[++reader->page];
    if (!open_page(page, &footer)) return -1;
    reader->at = page->bytes + 4;
    reader->end = footer;
    const uint8_t *index = footer, *end = page->bytes + page->size;
    if (index < end) {
        if (!varint(&index, end, &term) || term < 4 || term > (size_t)(footer - page->bytes)) return -1;
        reader->end = page->bytes + term;
        reader->last = 1;
    }
    return 1;
}

/* Moves to the doclist of a term on the first page: 1, or 0 if it is not there, or -1. */
static int find_term(Reader *reader, Bytes term)
{
    uint8_t word[TERM_MAX + 16];
    const uint8_t *footer, *bytes = reader->pages[0].bytes, *end = bytes + reader->pages[0].size;
    uint64_t step, shared = 0, fresh, size = 0, place = 0;
    if (!open_page(&reader->pages[0], &footer)) return -1;
    const uint8_t *index = footer;
    for (int first = 1; index < end; first = 0) {
        if (!varint(&index, end, &step) || step > (size_t)(footer - bytes)) return -1;
        place += step;
        if (place < 4 || place >= (size_t)(footer - bytes)) return -1;
        const uint8_t *at = bytes + place;
        if (!first && !varint(&at, footer, &shared)) return -1;
        if (!varint(&at, footer, &fresh) || shared > size || fresh > (size_t)(footer - at)) return -1;
        if (shared + fresh > TERM_MAX) return -1;
        memcpy(word + shared, at, fresh);
        size = shared + fresh;
        if (size != term.size || memcmp(word, term.bytes, size)) continue;
        reader->at = at + fresh;
        reader->end = footer;
        if (index < end) {
            if (!varint(&index, end, &step) || step > (size_t)(footer - bytes)) return -1;
            place += step;
            if (place < (size_t)(reader->at - bytes) || place > (size_t)(footer - bytes)) return -1;
            reader->end = bytes + place;
            reader->last = 1;
        }
        return 1;
    }
    return 0;
}

/* The ordinals of the fields that rows are read of, ascending; without any all are. */
typedef struct { const uint32_t *ordinals; size_t count; } Fields;

/* Adds the rows of a term in one segment, ascending; their first places go to `places`. */
static int read_rows(const Bytes *pages, size_t count, Bytes term, Fields fields, Rows *rows, Places *places, Work *work)
{
    Reader reader = {pages, count, 0, NULL, NULL, 0};
    size_t field = 0;
    uint64_t id = 0, step, left, value;
    int state = count ? find_term(&reader, term) : 0, whole = 1;
    for (int first = 1; state > 0; first = 0) {
        while (reader.at == reader.end && (state = next_page(&reader)) > 0) whole = 1;
        if (state <= 0) break;
        if (!varint(&reader.at, reader.end, &step)) return DAMAGED;
        if (!first && (whole ? step : step + id) <= id) return DAMAGED;
        id = whole ? step : id + step;
        whole = 0;
        if (id >> 63 || !varint(&reader.at, reader.end, &left)) return DAMAGED;
        while (field < fields.count && fields.ordinals[field] < id >> 32) field++;
        int inside = !fields.count || (field < fields.count && fields.ordinals[field] == id >> 32);
        if (!grow((void **)&rows->rows, &rows->room, rows->count + 1, sizeof(Row))) return NO_MEMORY;
        Row *row = &rows->rows[rows->count];
        *row = (Row){id, (uint32_t)places->count, 0};
        rows->count += (size_t)inside;
        uint64_t place = 0;
        for (left >>= 1; left;) {
            if (reader.at == reader.end) {
                if (next_page(&reader) <= 0) return DAMAGED;
                whole = 1;
                continue;
            }
            const uint8_t *before = reader.at, *end = reader.end;
            if (left < (size_t)(end - before)) end = before + left;
            if (!inside) {
                left -= (size_t)(end - before);
                reader.at = end;
                continue;
            }
            if (!varint(&reader.at, end, &value) || value < 2 || value > UINT32_MAX) return DAMAGED;
            left -= (size_t)(reader.at - before);
            place += value - 2;
            if (place > INT32_MAX / 4) return DAMAGED;
            if (row->count == PLACES_MAX) continue;
            if (!grow((void **)&places->at, &places->room, places->count + 1, 4)) return NO_MEMORY;
            if (places->count >= NONE) return TOO_MUCH;
            places->at[places->count++] = (uint32_t)place;
            row->count++;
        }
        int done = worked(work, 1, (size_t)inside);
        if (done) return done;
    }
    return state < 0 ? DAMAGED : DONE;
}

/* Merges the rows of an older segment into those of newer ones, which hide equal ones. */
static int merge(Rows *newer, const Rows *older)
{
    Rows merged = {NULL, 0, 0};
    size_t n = 0, o = 0, total = newer->count + older->count;
    if (!older->count) return 1;
    if (!grow((void **)&merged.rows, &merged.room, total, sizeof(Row))) return 0;
    while (n < newer->count || o < older->count) {
        int take = o == older->count || (n < newer->count && newer->rows[n].id <= older->rows[o].id);
        if (take && o < older->count && newer->rows[n].id == older->rows[o].id) o++;
        merged.rows[merged.count++] = take ? newer->rows[n++] : older->rows[o++];
    }
    free(newer->rows);
    *newer = merged;
    return 1;
}

/* The words of a question in one table; the pages of a segment each, the newest segment first. */
typedef struct { uint8_t group, passages; Bytes term; size_t segments; Bytes **pages; size_t *counts; } List;

static int read_list(const List *list, Fields fields, Rows *rows, Places *places, Work *work)
{
    Rows older = {NULL, 0, 0};
    int done = DONE;
    rows->count = 0;
    for (size_t n = 0; n < list->segments && done == DONE; n++) {
        older.count = 0;
        done = read_rows(list->pages[n], list->counts[n], list->term, fields, n ? &older : rows, places, work);
        if (done == DONE && n && !merge(rows, &older)) done = NO_MEMORY;
    }
    free(older.rows);
    return done;
}

/* Scoring: the formula of evidence/ranking.py */

typedef struct { Place *places; size_t count, room; Text *texts; size_t texts_count, texts_room; } Record;

static int add_place(Record *record, uint32_t at, uint8_t group)
{
    if (!grow((void **)&record->places, &record->room, record->count + 1, sizeof(Place))) return 0;
    record->places[record->count++] = (Place){at, group};
    return 1;
}

static int add_text(Record *record, int flags)
{
    if (!grow((void **)&record->texts, &record->texts_room, record->texts_count + 1, sizeof(Text))) return 0;
    record->texts[record->texts_count++] = (Text){record->count, 0, flags};
    return 1;
}

/* How often each group occurs: in short values together, and in the passage that has most of it. */
typedef struct { double whole[GROUPS_MAX], part[GROUPS_MAX]; uint64_t held, free; } Counts;

static void begin_counts(const Question *q, Counts *counts)
{
    for (size_t g = 0; g < q->groups; g++) counts->whole[g] = counts->part[g] = 0;
    counts->held = counts->free = 0;
}

/* Adds those of a text, and sets them to 0. */
static void add_counts(const Question *q, Counts *counts, uint32_t *here, uint64_t bits, int flags)
{
    counts->held |= bits;
    if (flags & EVERYWHERE) counts->free |= bits;
    for (size_t g = 0; bits; g++, bits >>= 1) {
        if (!(bits & 1)) continue;
        double count = here[g] < PLACES_MAX ? here[g] : PLACES_MAX;
        if (flags & TITLE) count *= q->title_weight;
        if (!(flags & PART)) counts->whole[g] += count;
        else if (count > counts->part[g]) counts->part[g] = count;
        here[g] = 0;
    }
}

/* The summed weight of the words of a record. */
static double weighted(const Question *q, const Counts *counts, double length)
{
    double relative = length / q->mean, sum = 0;
    double damp = q->saturation * (1 - q->share + q->share * (relative < q->longest ? relative : q->longest));
    for (size_t g = 0; g < q->groups; g++) {
        double count = counts->whole[g] + counts->part[g];
        if (count > 0) sum += q->idf[g] * count * (1 + q->saturation) / (count + damp);
    }
    return sum;
}

/* The share of the question near the best place. `apart` is added to each distance that is not 0;
   with `anywhere` every word is a centre. */
static double nearness(const Question *q, const Record *record, const Counts *counts, uint32_t apart,
                       int anywhere, size_t *steps)
{
    double near = 0, best;
    uint64_t centres = 0, others = counts->held & ~counts->free;
    size_t left = anywhere ? GROUPS_MAX : q->centres;
    for (size_t g = 0; g < q->groups; g++) near += counts->free >> g & 1 ? q->idf[g] : 0;
    for (size_t n = 0; n < q->occurring && left; n++)
        if (others >> q->rarest[n] & 1) { centres |= 1ULL << q->rarest[n]; left--; }
    best = near;
    for (size_t t = 0; t < record->texts_count; t++) {
        const Text *text = &record->texts[t];
        const Place *first = record->places + text->first, *end = first + text->count;
        double bound = near;
        uint64_t bits = 0;
        if (text->flags & EVERYWHERE) continue;
        for (const Place *place = first; place < end; place++) bits |= 1ULL << place->group;
        for (size_t g = 0; g < q->groups; g++) bound += bits & others & 1ULL << g ? q->idf[g] : 0;
        for (const Place *centre = first; centre < end && best < bound; centre++) {
            uint32_t away[GROUPS_MAX];
            double sum = near;
            if (!(centres >> centre->group & 1)) continue;
            memset(away, 255, q->groups * sizeof *away);
            *steps += (size_t)(end - first);
            for (const Place *place = first; place < end; place++) {
                uint32_t distance = place->at > centre->at ? place->at - centre->at : centre->at - place->at;
                if (distance) distance += apart;
                if (distance < away[place->group]) away[place->group] = distance;
            }
            for (size_t g = 0; g < q->groups; g++)
                if (bits & others & 1ULL << g) sum += q->idf[g] / (1 + away[g] / q->near_chars);
            if (sum > best) best = sum;
        }
    }
    return best / q->total;
}

/* Matching: every record that holds a word, with an upper bound of its score */

typedef struct { double value; uint64_t bits; uint32_t seq, actor; } Best;
typedef struct { double share; uint64_t bits; uint32_t seq, head, actor; } Noted; /* share: of the groups in `bits` */

typedef struct {
    Question question;
    Work work;
    List *lists;
    size_t lists_count, fields, runs, last_seq, most, passages_max;
    const uint32_t *ordinals, *run_first, *run_seq, *run_parts;
    const uint8_t *flags;
    uint32_t apart, stride, here[GROUPS_MAX];
    int every;
    /* What is found */
    Rows *rows; /* of each list, and the next of them */
    size_t *next_row;
    Entry *entries;
    size_t entries_count, entries_room, noted_count, noted_room;
    uint32_t *run_blocks;
    size_t blocks;
    uint32_t *numbers, *heads; /* of each record in `noted`, from 1 on; where passages of the best begin */
    Noted *noted;
    Places places;
    Best *best;
    size_t best_count, some, all;
    double least[2]; /* no record that is left out has a higher bound: of others, of those that name an actor */
} Match;

/* For each `RUN_BLOCK` numbers of passages, how many runs begin before them: 0 if it cannot be. */
static int index_runs(Match *match)
{
    size_t run = 0, blocks = match->runs ? match->run_first[match->runs - 1] / RUN_BLOCK + 2 : 1;
    if (blocks > RUN_BLOCKS_MAX || !(match->run_blocks = malloc((blocks + 1) * sizeof(uint32_t)))) return 0;
    for (size_t n = 0; n <= blocks; n++) {
        while (run < match->runs && match->run_first[run] < n * RUN_BLOCK) run++;
        match->run_blocks[n] = (uint32_t)run;
    }
    match->blocks = blocks;
    return 1;
}

/* The number of the run of passages that has one, or NONE. */
static uint32_t run_of(const Match *match, uint32_t number)
{
    size_t block = number / RUN_BLOCK < match->blocks ? number / RUN_BLOCK : match->blocks - 1;
    size_t low = match->run_blocks[block], high = match->run_blocks[block + 1];
    while (low < high && match->run_first[low] <= number) low++;
    if (!low || number - match->run_first[low - 1] >= match->run_parts[low - 1]) return NONE;
    return (uint32_t)(low - 1);
}

/* Adds a row to the entries at `head`. */
static int add_entry(Match *match, const Row *row, uint8_t group, size_t field, uint32_t part, uint32_t run, uint32_t *head)
{
    size_t next = match->entries_count + 1;
    if (!grow((void **)&match->entries, &match->entries_room, next, sizeof(Entry))) return NO_MEMORY;
    match->entries[next - 1] = (Entry){*head, row->first, part, run, (uint16_t)row->count, (uint16_t)field, group};
    *head = (uint32_t)next;
    match->entries_count = next;
    return DONE;
}

/* The record of a row, and for a passage its number from 1 on and the run that it is in. */
static int record_of(const Match *match, int passages, uint32_t number, uint32_t *seq, uint32_t *part, uint32_t *run)
{
    *seq = number;
    *part = 0;
    if (passages) {
        *run = run_of(match, number);
        if (*run == NONE) return 0;
        *part = number - match->run_first[*run] + 1;
        *seq = match->run_seq[*run];
    }
    return *seq <= match->last_seq;
}

/* Notes the rows of the fields `first` to `end` by their records; so few of them stay in the cache. */
static int note(Match *match, size_t first, size_t end)
{
    for (size_t n = 0; n < match->lists_count; n++) {
        const List *list = &match->lists[n];
        const Rows *rows = &match->rows[n];
        size_t field = first, *at = &match->next_row[n], before = *at;
        uint32_t run = NONE, seq, part;
        for (; *at < rows->count && (uint32_t)(rows->rows[*at].id >> 32) <= match->ordinals[end - 1]; ++*at) {
            const Row *row = &rows->rows[*at];
            uint32_t ordinal = (uint32_t)(row->id >> 32);
            while (match->ordinals[field] < ordinal) field++;
            if (!row->count || match->ordinals[field] != ordinal) continue;
            if (!record_of(match, list->passages, (uint32_t)row->id, &seq, &part, &run)) return DAMAGED;
            if (!match->numbers[seq]) {
                size_t next = match->noted_count + 1;
                if (!grow((void **)&match->noted, &match->noted_room, next, sizeof(Noted))) return NO_MEMORY;
                match->noted[match->noted_count++] = (Noted){0, 0, seq, 0, 0};
                match->numbers[seq] = (uint32_t)next;
            }
            Noted *noted = &match->noted[match->numbers[seq] - 1];
            if (!(noted->bits >> list->group & 1)) noted->share += match->question.idf[list->group];
            noted->bits |= 1ULL << list->group;
            noted->actor |= match->flags[field] & ACTOR;
            int done = add_entry(match, row, list->group, field, part, run, &noted->head);
            if (done) return done;
        }
        int done = worked(&match->work, *at - before, 0);
        if (done) return done;
    }
    return DONE;
}

static int by_text(const void *first, const void *second)
{
    const Entry *a = first, *b = second;
    if (a->field != b->field) return a->field < b->field ? -1 : 1;
    if (a->part != b->part) return a->part < b->part ? -1 : 1;
    return (int)a->group - (int)b->group;
}

/* The entries of a record, by text; 0 without memory. */
static size_t entries_of(const Match *match, uint32_t head, Entry **entries, size_t *room)
{
    size_t count = 0, few = 16;
    for (uint32_t n = head; n; n = match->entries[n - 1].next) {
        if (!grow((void **)entries, room, count + 1, sizeof(Entry))) return 0;
        Entry entry = match->entries[n - 1], *sorted = *entries;
        size_t at = count++;
        for (; count <= few && at && by_text(&sorted[at - 1], &entry) > 0; at--) sorted[at] = sorted[at - 1];
        sorted[at] = entry;
    }
    if (count > few) qsort(*entries, count, sizeof(Entry), by_text);
    return count;
}

/* The words that a long value counts as. */
static double part_words(const Match *match, uint32_t run)
{
    const Question *q = &match->question;
    uint32_t parts = match->run_parts[run];
    return parts >= (uint32_t)q->long_passages ? q->long_words : parts * q->passage_words;
}

/* The places of a record as bounds of where they are: a word and a space have two characters. */
static int add_places(const Match *match, Record *record, const Entry *entries, size_t count)
{
    record->count = record->texts_count = 0;
    for (size_t n = 0; n < count; n++) {
        const Entry *entry = &entries[n];
        int flags = match->flags[entry->field] & (entry->part ? 0 : EVERYWHERE);
        if (!n || entry[-1].field != entry->field || entry[-1].part != entry->part)
            if (!add_text(record, flags)) return 0;
        for (uint32_t p = 0; p < entry->count; p++)
            if (!add_place(record, 2 * match->places.at[entry->first + p], entry->group)) return 0;
        record->texts[record->texts_count - 1].count += entry->count;
    }
    return 1;
}

/* An upper bound of the score of a record; only a rough one if it is not above `least`. */
static int bound_of(Match *match, Record *record, const Entry *entries, size_t count, double least, double *bound)
{
    const Question *q = &match->question;
    Counts counts;
    double length = 0, share = 0;
    size_t steps = 0, passages = 0;
    begin_counts(q, &counts);
    for (size_t n = 0; n < count;) {
        const Entry *first = &entries[n];
        int flags = match->flags[first->field];
        uint32_t last = 0, at;
        uint64_t bits = 0;
        for (; n < count && entries[n].field == first->field && entries[n].part == first->part; n++) {
            match->here[entries[n].group] += entries[n].count;
            bits |= 1ULL << entries[n].group;
            at = match->places.at[entries[n].first + entries[n].count - 1];
            if (at > last) last = at;
        }
        add_counts(q, &counts, match->here, bits, first->part ? (flags & ~EVERYWHERE) | PART : flags);
        passages += first->part > 0;
        if (!first->part) length += last + 1;
        else if (n == count || entries[n].field != first->field) length += part_words(match, first->run);
    }
    for (size_t g = 0; g < q->groups; g++) share += counts.held >> g & 1 ? q->idf[g] : 0;
    double words = weighted(q, &counts, length);
    *bound = words * share / q->total;
    if (*bound > least) {
        /* Not all of many passages are ranked, so that words which the others hold may be missing. */
        if (!add_places(match, record, entries, count)) return NO_MEMORY;
        *bound = words * nearness(q, record, &counts, match->apart, passages > match->passages_max, &steps);
    }
    return worked(&match->work, 1 + steps / 8, 0);
}

/* Keeps the best: a heap with the least on top. */
static void keep(Match *match, Best found)
{
    Best *heap = match->best;
    size_t at, child;
    if (match->best_count < match->most) {
        for (at = match->best_count++; at && heap[(at - 1) / 2].value > found.value; at = (at - 1) / 2)
            heap[at] = heap[(at - 1) / 2];
        heap[at] = found;
        return;
    }
    const Best *left_out = found.value > heap[0].value ? &heap[0] : &found;
    if (left_out->value > match->least[left_out->actor != 0]) match->least[left_out->actor != 0] = left_out->value;
    if (left_out == &found) return;
    for (at = 0; (child = 2 * at + 1) < match->best_count; at = child) {
        if (child + 1 < match->best_count && heap[child + 1].value < heap[child].value) child++;
        if (heap[child].value >= found.value) break;
        heap[at] = heap[child];
    }
    heap[at] = found;
}

static int by_value(const void *first, const void *second)
{
    const Best *a = first, *b = second;
    if (a->value != b->value) return a->value > b->value ? -1 : 1;
    return a->seq > b->seq ? -1 : a->seq < b->seq;
}

/* Bounds the scores of the records that were noted, and forgets them. */
static int bound_noted(Match *match, Record *record, Entry **entries, size_t *room)
{
    const Question *q = &match->question;
    size_t count, groups = q->groups;
    uint64_t every = groups == 64 ? UINT64_MAX : (1ULL << groups) - 1;
    int done = DONE;
    for (size_t n = 0; n < match->noted_count && done == DONE; n++) {
        const Noted *noted = &match->noted[n];
        /* However often a record has its words, its score is below this. */
        double rough = noted->share * (1 + q->saturation) * noted->share / q->total;
        Best best = {rough, noted->bits, noted->seq, noted->actor};
        match->numbers[best.seq] = 0;
        if (match->every && best.bits != every) continue;
        match->some++;
        match->all += best.bits == every;
        double least = match->best_count == match->most ? match->best[0].value : -1;
        if (best.value > least) {
            if (!(count = entries_of(match, noted->head, entries, room))) return NO_MEMORY;
            done = bound_of(match, record, *entries, count, least, &best.value);
        } else {
            done = worked(&match->work, 1, 0);
        }
        keep(match, best);
    }
    match->noted_count = match->entries_count = 0;
    return done;
}

/* Notes the passages of the best by their number instead of their record. */
static int note_passages(Match *match)
{
    if (!(match->heads = calloc(match->best_count + 1, sizeof *match->heads))) return NO_MEMORY;
    for (size_t n = 0; n < match->best_count; n++) match->numbers[match->best[n].seq] = (uint32_t)n + 1;
    for (size_t n = 0; n < match->lists_count; n++) {
        size_t field = 0;
        uint32_t run = NONE, seq, part;
        for (size_t r = 0; match->lists[n].passages && r < match->rows[n].count; r++) {
            const Row *row = &match->rows[n].rows[r];
            uint32_t ordinal = (uint32_t)(row->id >> 32);
            while (field < match->fields && match->ordinals[field] < ordinal) field++;
            if (field == match->fields) break;
            if (!row->count || match->ordinals[field] != ordinal) continue;
            if (!record_of(match, 1, (uint32_t)row->id, &seq, &part, &run)) return DAMAGED;
            if (!match->numbers[seq]) continue;
            uint32_t *head = &match->heads[match->numbers[seq] - 1];
            int done = add_entry(match, row, match->lists[n].group, field, part, run, head);
            if (done) return done;
        }
    }
    return DONE;
}

static int run_match(Match *match)
{
    Record record = {0};
    Entry *entries = NULL;
    Fields fields = {match->ordinals, match->fields};
    size_t room = 0;
    int done = DONE;
    for (size_t n = 0; n < match->lists_count && done == DONE; n++)
        done = read_list(&match->lists[n], fields, &match->rows[n], &match->places, &match->work);
    for (size_t first = 0, end; first < match->fields && done == DONE; first = end) {
        for (end = first + 1; end < match->fields && !(match->flags[end] & FIRST);) end++;
        done = note(match, first, end);
        if (done == DONE) done = bound_noted(match, &record, &entries, &room);
    }
    free(entries);
    free(record.places);
    free(record.texts);
    if (done == DONE) qsort(match->best, match->best_count, sizeof(Best), by_value);
    return done == DONE ? note_passages(match) : done;
}

/* Exact scores of folded texts */

typedef struct { const uint8_t *bytes; size_t size; uint8_t group; int next; } Word;
typedef struct { Question question; Word *words; size_t count; int first[256]; } Words;

/* Adds the places of the words of a question in a text: code points. Words are between spaces. */
static int find_places(const Words *words, Bytes text, Record *record)
{
    uint16_t here[GROUPS_MAX] = {0};
    uint32_t chars = 0, begin_chars = 0;
    size_t begin = 0;
    for (size_t n = 0; n <= text.size; n++) {
        if (n < text.size && text.bytes[n] != ' ') { chars += (text.bytes[n] & 0xC0) != 0x80; continue; }
        size_t size = n - begin;
        for (int w = size ? words->first[text.bytes[begin]] : -1; w >= 0; w = words->words[w].next) {
            const Word *word = &words->words[w];
            if (word->size != size || memcmp(word->bytes, text.bytes + begin, size)) continue;
            if (here[word->group]++ < PLACES_MAX && !add_place(record, begin_chars, word->group)) return 0;
        }
        begin = n + 1;
        begin_chars = ++chars;
    }
    return 1;
}

/* Python. Formats with `#` are not used: built with the headers of 3.13, they fail on 3.11. */

static int fail(int done)
{
    if (done == NO_MEMORY) PyErr_NoMemory();
    else if (done == TOO_LATE) PyErr_SetString(PyExc_TimeoutError, "the deadline passed");
    else if (done == TOO_MUCH) PyErr_SetString(PyExc_OverflowError, "too many postings");
    else PyErr_SetString(PyExc_ValueError, "a page of the index is damaged or of another format");
    return 0;
}

static int bytes_of(PyObject *object, Bytes *bytes)
{
    char *data;
    Py_ssize_t size;
    if (!object || PyBytes_AsStringAndSize(object, &data, &size) < 0) return 0;
    *bytes = (Bytes){(const uint8_t *)data, (size_t)size};
    return 1;
}

/* (idf of each group as doubles, mean length, summed idf, centres, constants of the formula...) */
static int question_of(PyObject *tuple, Question *q)
{
    PyObject *figures;
    Bytes idf;
    unsigned int centres;
    if (!PyArg_ParseTuple(tuple, "OddIddddiddi", &figures, &q->mean, &q->total, &centres, &q->saturation,
                          &q->share, &q->longest, &q->near_chars, &q->title_weight, &q->passage_words,
                          &q->long_words, &q->long_passages) || !bytes_of(figures, &idf)) return 0;
    q->groups = idf.size / sizeof(double);
    q->centres = centres;
    q->occurring = 0;
    if (q->groups > GROUPS_MAX) return fail(TOO_MUCH);
    memcpy(q->idf, idf.bytes, q->groups * sizeof(double));
    for (size_t g = 0; g < q->groups; g++) {
        size_t at = q->occurring;
        if (!(q->idf[g] > 0)) continue;
        for (; at && q->idf[q->rarest[at - 1]] < q->idf[g]; at--) q->rarest[at] = q->rarest[at - 1];
        q->rarest[at] = (uint8_t)g;
        q->occurring++;
    }
    return 1;
}

static void free_lists(List *lists, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        for (size_t s = 0; lists[n].pages && s < lists[n].segments; s++) free(lists[n].pages[s]);
        free(lists[n].pages);
        free(lists[n].counts);
    }
    free(lists);
}

/* (group, whether of passages, term, ((page, ...) of each segment, the newest first)) */
static int list_of(PyObject *tuple, List *list)
{
    unsigned int group;
    int passages;
    PyObject *term, *segments;
    if (!PyArg_ParseTuple(tuple, "IpOO", &group, &passages, &term, &segments)) return 0;
    if (!bytes_of(term, &list->term)) return 0;
    if (group >= GROUPS_MAX) return fail(TOO_MUCH);
    Py_ssize_t count = PyTuple_Size(segments);
    if (count < 0) return 0;
    list->group = (uint8_t)group;
    list->passages = (uint8_t)passages;
    list->pages = calloc((size_t)count + 1, sizeof(Bytes *));
    list->counts = calloc((size_t)count + 1, sizeof(size_t));
    if (!list->pages || !list->counts) return fail(NO_MEMORY);
    list->segments = (size_t)count;
    for (Py_ssize_t s = 0; s < count; s++) {
        PyObject *pages = PyTuple_GetItem(segments, s);
        Py_ssize_t size = pages ? PyTuple_Size(pages) : -1;
        if (size < 0) return 0;
        list->counts[s] = (size_t)size;
        if (!(list->pages[s] = calloc((size_t)size + 1, sizeof(Bytes)))) return fail(NO_MEMORY);
        for (Py_ssize_t p = 0; p < size; p++)
            if (!bytes_of(PyTuple_GetItem(pages, p), &list->pages[s][p])) return 0;
    }
    return 1;
}

/* What was found: (records, of those with every group, bounds of the others, best [(seq, bound, groups, actor, passages)]).
   Passages of long values are (ordinal, start, groups). */
static PyObject *matched(const Match *match)
{
    PyObject *best = PyList_New((Py_ssize_t)match->best_count);
    Entry *entries = NULL;
    size_t room = 0;
    for (size_t n = 0; best && n < match->best_count; n++) {
        const Best *found = &match->best[n];
        PyObject *passages = PyList_New(0), *one = NULL;
        size_t count = entries_of(match, match->heads[n], &entries, &room);
        for (size_t e = 0; passages && e < count;) {
            const Entry *first = &entries[e];
            uint64_t bits = 0;
            for (; e < count && entries[e].field == first->field && entries[e].part == first->part; e++)
                bits |= 1ULL << entries[e].group;
            PyObject *passage = Py_BuildValue("IKK", match->ordinals[first->field],
                (first->part - 1) * (unsigned long long)match->stride, bits);
            if (!passage || PyList_Append(passages, passage) < 0) Py_CLEAR(passages);
            Py_XDECREF(passage);
        }
        if (passages) one = Py_BuildValue("IdKiN", found->seq, found->value, found->bits, found->actor != 0, passages);
        if (!one || PyList_SetItem(best, (Py_ssize_t)n, one) < 0) Py_CLEAR(best);
    }
    free(entries);
    return best ? Py_BuildValue("nnddN", (Py_ssize_t)match->some, (Py_ssize_t)match->all, match->least[0],
                                match->least[1], best) : NULL;
}

static PyObject *match_records(PyObject *module, PyObject *args)
{
    Match match = {0};
    PyObject *question, *lists, *columns[5], *result = NULL;
    Bytes ordinals, flags, first, seqs, parts, *read[5] = {&ordinals, &flags, &first, &seqs, &parts};
    Py_ssize_t last_seq, most, budget, passages_max;
    double seconds;
    int done = DAMAGED;
    if (!PyArg_ParseTuple(args, "O!O!(OO)(OOO)nnpInInd", &PyTuple_Type, &question, &PyTuple_Type, &lists,
                          &columns[0], &columns[1], &columns[2], &columns[3], &columns[4], &last_seq, &most,
                          &match.every, &match.apart, &passages_max, &match.stride, &budget, &seconds))
        return NULL;
    for (int n = 0; n < 5; n++) if (!bytes_of(columns[n], read[n])) return NULL;
    if (!question_of(question, &match.question)) return NULL;
    match.lists_count = (size_t)PyTuple_Size(lists);
    match.lists = calloc(match.lists_count + 1, sizeof(List));
    for (size_t n = 0; match.lists && n < match.lists_count; n++)
        if (!list_of(PyTuple_GetItem(lists, (Py_ssize_t)n), &match.lists[n])) goto end;
    match.fields = flags.size;
    match.runs = first.size / 4;
    match.last_seq = (size_t)last_seq;
    match.most = (size_t)most;
    match.passages_max = (size_t)passages_max;
    match.work = (Work){0, (size_t)budget, 0, now() + seconds};
    match.ordinals = (const uint32_t *)ordinals.bytes;
    match.flags = flags.bytes;
    match.run_first = (const uint32_t *)first.bytes;
    match.run_seq = (const uint32_t *)seqs.bytes;
    match.run_parts = (const uint32_t *)parts.bytes;
    if (ordinals.size != flags.size * 4 || first.size != seqs.size || first.size != parts.size || most < 1
        || last_seq < 0 || last_seq >= NONE || flags.size > UINT16_MAX) { fail(DAMAGED); goto end; }
    match.numbers = calloc(match.last_seq + 1, sizeof *match.numbers);
    match.rows = calloc(match.lists_count + 1, sizeof(Rows));
    match.next_row = calloc(match.lists_count + 1, sizeof(size_t));
    int indexed = index_runs(&match);
    match.best = malloc((match.most + 1) * sizeof(Best));
    Py_BEGIN_ALLOW_THREADS
    done = indexed && match.numbers && match.lists && match.rows && match.next_row && match.best ? run_match(&match) : NO_MEMORY;
    Py_END_ALLOW_THREADS
    if (done == DONE) result = matched(&match); else fail(done);
end:
    if (match.lists) free_lists(match.lists, match.lists_count);
    for (size_t n = 0; match.rows && n < match.lists_count; n++) free(match.rows[n].rows);
    free(match.rows);
    free(match.next_row);
    free(match.run_blocks);
    free(match.numbers);
    free(match.heads);
    free(match.noted);
    free(match.entries);
    free(match.places.at);
    free(match.best);
    return result;
}

/* score(question, words, [(length, ((text, flags), ...)), ...]): exact scores */
static PyObject *score_records(PyObject *module, PyObject *args)
{
    Words words = {0};
    Record record = {0};
    uint32_t here[GROUPS_MAX] = {0};
    PyObject *question, *spellings, *records, *scores = NULL;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyTuple_Type, &question, &PyTuple_Type, &spellings, &PyList_Type, &records))
        return NULL;
    if (!question_of(question, &words.question)) return NULL;
    words.count = (size_t)PyTuple_Size(spellings);
    words.words = calloc(words.count + 1, sizeof(Word));
    if (!words.words) return PyErr_NoMemory();
    memset(words.first, 255, sizeof words.first);
    for (size_t n = 0; n < words.count; n++) {
        PyObject *spelling;
        Bytes word;
        unsigned int group;
        if (!PyArg_ParseTuple(PyTuple_GetItem(spellings, (Py_ssize_t)n), "IO", &group, &spelling)) goto end;
        if (!bytes_of(spelling, &word)) goto end;
        if (group >= words.question.groups || !word.size) continue;
        words.words[n] = (Word){word.bytes, word.size, (uint8_t)group, words.first[word.bytes[0]]};
        words.first[word.bytes[0]] = (int)n;
    }
    scores = PyList_New(0);
    for (Py_ssize_t n = 0; scores && n < PyList_Size(records); n++) {
        double length = 0;
        PyObject *texts, *score;
        Counts counts;
        size_t steps = 0;
        record.count = record.texts_count = 0;
        begin_counts(&words.question, &counts);
        if (!PyArg_ParseTuple(PyList_GetItem(records, n), "dO!", &length, &PyTuple_Type, &texts)) { Py_CLEAR(scores); break; }
        for (Py_ssize_t t = 0; t < PyTuple_Size(texts); t++) {
            PyObject *folded;
            const char *text = NULL;
            Py_ssize_t size;
            int flags;
            if (PyArg_ParseTuple(PyTuple_GetItem(texts, t), "Ui", &folded, &flags)) text = PyUnicode_AsUTF8AndSize(folded, &size);
            if (!text) { Py_CLEAR(scores); goto end; }
            Bytes bytes = {(const uint8_t *)text, (size_t)size};
            if (!add_text(&record, flags) || !find_places(&words, bytes, &record)) { Py_CLEAR(scores); fail(NO_MEMORY); goto end; }
            record.texts[t].count = record.count - record.texts[t].first;
            uint64_t bits = 0;
            for (size_t p = record.texts[t].first; p < record.count; p++) {
                here[record.places[p].group]++;
                bits |= 1ULL << record.places[p].group;
            }
            add_counts(&words.question, &counts, here, bits, flags);
        }
        double value = weighted(&words.question, &counts, length);
        score = PyFloat_FromDouble(value * nearness(&words.question, &record, &counts, 0, 0, &steps));
        if (!score || PyList_Append(scores, score) < 0) Py_CLEAR(scores);
        Py_XDECREF(score);
    }
end:
    free(words.words);
    free(record.places);
    free(record.texts);
    return scores;
}

/* rows(term, segments): [(row id, places)] of a term, as match reads them */
static PyObject *term_rows(PyObject *module, PyObject *args)
{
    List list = {0};
    Rows rows = {0};
    Places places = {0};
    PyObject *result = NULL, *tuple = Py_BuildValue("IO", 0, Py_False), *whole = tuple ? PySequence_Concat(tuple, args) : NULL;
    Work work = {0, SIZE_MAX, 0, now() + 3600};
    Py_XDECREF(tuple);
    if (whole && list_of(whole, &list)) {
        int done = read_list(&list, (Fields){NULL, 0}, &rows, &places, &work);
        if (done != DONE) fail(done); else result = PyList_New(0);
        for (size_t n = 0; result && n < rows.count; n++) {
            PyObject *at = PyList_New(0), *row;
            if (!rows.rows[n].count) { Py_XDECREF(at); continue; }
            for (uint32_t p = 0; at && p < rows.rows[n].count; p++) {
                PyObject *place = PyLong_FromUnsignedLong(places.at[rows.rows[n].first + p]);
                if (!place || PyList_Append(at, place) < 0) Py_CLEAR(at);
                Py_XDECREF(place);
            }
            row = at ? Py_BuildValue("KN", rows.rows[n].id, at) : NULL;
            if (!row || PyList_Append(result, row) < 0) Py_CLEAR(result);
            Py_XDECREF(row);
        }
    }
    for (size_t s = 0; list.pages && s < list.segments; s++) free(list.pages[s]);
    free(list.pages);
    free(list.counts);
    free(rows.rows);
    free(places.at);
    Py_XDECREF(whole);
    return result;
}

static PyMethodDef METHODS[] = {
    {"match", match_records, METH_VARARGS, NULL},
    {"score", score_records, METH_VARARGS, NULL},
    {"rows", term_rows, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "scorer", NULL, 0, METHODS, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_scorer(void) { return PyModuleDef_Init(&MODULE); }
