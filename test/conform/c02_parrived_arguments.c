/* Parrived on MPI_REQUEST_NULL and inactive requests is true; wrong arguments are errors that name themselves.
 *
 * run: -n 1 */
#include "check.h"

int main(void)
{
    double x[4];
    int flag = -1;
    MPI_Request s, r, null = MPI_REQUEST_NULL, plain;
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Psend_init(x, 4, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Precv_init(x, 4, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    EXPECT(MPI_Parrived(null, 0, &flag) == MPI_SUCCESS && flag == 1, "null: %d", flag);
    flag = -1;
    EXPECT(MPI_Parrived(r, 3, &flag) == MPI_SUCCESS && flag == 1, "inactive: %d", flag);
    ERROR(MPI_Parrived(r, 0, NULL), MPI_ERR_ARG, "MPI_Parrived", "flag");
    ERROR(MPI_Parrived(r, 4, &flag), MPI_ERR_ARG, "partition", "4");
    ERROR(MPI_Parrived(r, -1, &flag), MPI_ERR_ARG, "partition", "-1");
    ERROR(MPI_Parrived(s, 0, &flag), MPI_ERR_REQUEST, "MPI_Parrived", "send");
    MPI_Recv_init(x, 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, &plain);
    ERROR(MPI_Parrived(plain, 0, &flag), MPI_ERR_REQUEST, "MPI_Parrived", "receive");
    MPI_Request_free(&plain);
    MPI_Start(&r);
    ERROR(MPI_Parrived(r, 4, &flag), MPI_ERR_ARG, "partition", "4");
    EXPECT(MPI_Parrived(r, 0, &flag) == MPI_SUCCESS && flag == 0, "active: %d", flag);
    MPI_Start(&s);
    MPI_Pready_range(0, 3, s);
    MPI_Wait(&s, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT(MPI_Parrived(r, 0, &flag) == MPI_SUCCESS && flag == 1, "complete: %d", flag);
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    return end();
}
