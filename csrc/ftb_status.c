/* Names and messages of statuses, from the one list in ftbuf.h. */
#include "ftbuf.h"

static const char *const names[] = {
#define FTB_NAME(id, name, message) name,
    FTB_STATUSES(FTB_NAME)
#undef FTB_NAME
};

static const char *const messages[] = {
#define FTB_MESSAGE(id, name, message) message,
    FTB_STATUSES(FTB_MESSAGE)
#undef FTB_MESSAGE
};

const char *ftb_status_name(int status)
{
    return status >= 0 && status < FTB_N_STATUSES ? names[status] : "unknown_status";
}

const char *ftb_status_message(int status)
{
    return status >= 0 && status < FTB_N_STATUSES ? messages[status] : "unknown status";
}
